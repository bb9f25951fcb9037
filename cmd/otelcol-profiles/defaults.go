// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.opentelemetry.io/collector/featuregate"
)

// profilesGate enables pipelines of profiles. The Collector has it off by default.
const profilesGate = "service.profilesSupport"

// healthGate makes health_check say what a component reports, such as a full disk, in the body of its response. The code of
// the response stays 200, so that nothing restarts a Collector that waits.
const healthGate = "extension.healthcheck.useComponentStatus"

// memoryRatio is the share of a container's memory limit that becomes GOMEMLIMIT. The rest
// is for stacks of threads, buffers of the kernel, and memory that the garbage collector has not
// freed yet.
const memoryRatio = 0.8

// gcPercent replaces the 100 of GOGC if there is a memory limit, near which Go collects garbage anyway. It
// takes 10 % less CPU time (make bench BENCH=Sidecar, with GOGC=100 and without). 400 takes no less.
const gcPercent = 200

// The generated main has no place for defaults, so they are set before it runs. It parses the
// flags later: --feature-gates overrides them.
func init() {
	for _, gate := range []string{profilesGate, healthGate} {
		if err := featuregate.GlobalRegistry().Set(gate, true); err != nil {
			panic("feature gate " + gate + ": " + err.Error())
		}
	}
	setMemoryLimit(memlimit.FromCgroup)
	setGCPercent()
}

// setMemoryLimit sets Go's memory limit, unless GOMEMLIMIT is set or the container has no
// limit. The defaults of max_in_flight and memory_limit are shares of it.
func setMemoryLimit(container memlimit.Provider) {
	if limit, err := container(); err == nil && limit > 0 {
		_, _ = memlimit.Set(memlimit.WithProvider(container), memlimit.WithRatio(memoryRatio)) // an error leaves it as it is
	}
}

// setGCPercent makes garbage collection rarer, unless GOGC is set or only GOGC limits the memory.
func setGCPercent() {
	if os.Getenv("GOGC") == "" && debug.SetMemoryLimit(-1) < math.MaxInt64 {
		debug.SetGCPercent(gcPercent)
	}
}
