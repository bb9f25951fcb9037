// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.opentelemetry.io/collector/featuregate"
)

// profilesGate guards pipelines of the profiles signal in the collector, where
// it is off by default.
const profilesGate = "service.profilesSupport"

// memoryRatio is the share of a container's memory limit that becomes GOMEMLIMIT. The rest
// is for stacks of threads, buffers of the kernel, and what the garbage collector has not
// freed yet.
const memoryRatio = 0.8

// The generated main offers no place for defaults, so they are set before it
// runs. Flags are parsed later: a --feature-gates of the user wins.
func init() {
	if err := featuregate.GlobalRegistry().Set(profilesGate, true); err != nil {
		panic("feature gate " + profilesGate + ": " + err.Error())
	}
	setMemoryLimit(memlimit.FromCgroup)
}

// setMemoryLimit sets Go's memory limit, unless GOMEMLIMIT is set or the container has no
// limit. The defaults of max_in_flight and memory_limit are shares of it.
func setMemoryLimit(container memlimit.Provider) {
	if limit, err := container(); err == nil && limit > 0 {
		_, _ = memlimit.Set(memlimit.WithProvider(container), memlimit.WithRatio(memoryRatio)) // an error leaves it as it is
	}
}
