// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"os"
	"testing"

	"go.opentelemetry.io/collector/featuregate"
)

// profilesGate guards pipelines of the profiles signal in the collector, where
// it is off by default.
const profilesGate = "service.profilesSupport"

//go:embed default-config.yaml
var defaultConfig string

// The generated main offers no place for defaults, so they are set before it
// runs. Flags are parsed later: a --feature-gates of the user wins.
func init() {
	if err := featuregate.GlobalRegistry().Set(profilesGate, true); err != nil {
		panic("feature gate " + profilesGate + ": " + err.Error())
	}
	if !testing.Testing() { // a test binary has a command line of its own
		os.Args = withDefaultConfig(os.Args)
	}
}
