// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/featuregate"
)

func TestWithDefaultConfig(t *testing.T) {
	const (
		added     = true
		untouched = false
	)
	for _, tt := range []struct {
		name string
		args string
		want bool
	}{
		{"run", "", added},
		{"run with a gate", "--feature-gates=-service.profilesSupport", added},
		{"run with a gate in two words", "--feature-gates -service.profilesSupport", added},
		{"run with a value changed", "--set=processors.profiles_dedup.window=1s", added},
		{"run with a value changed in two words", "--set processors.profiles_dedup.window=1s", added},
		{"a gate named like a subcommand", "--feature-gates components", added},
		{"validate", "validate", added},
		{"validate, flags first", "--set=a.b=c validate", added},
		{"print-config", "print-config --mode unredacted --validate=false", added},
		{"print-config by its alias", "print-initial-config", added},
		{"a value that looks like the flag", "--set --config=x", added},
		{"behind a double dash", "-- --config=x", added},

		{"config", "--config=x.yaml", untouched},
		{"config in two words", "--config x.yaml", untouched},
		{"config that is empty", "--config=", untouched},
		{"second of two flags", "--set=a.b=c --config=x.yaml", untouched},
		{"validate a config", "validate --config=x.yaml", untouched},
		{"validate a config, flag first", "--config x.yaml validate", untouched},
		{"print a config", "print-config --config file:x.yaml", untouched},
		{"components", "components", untouched},
		{"featuregate", "featuregate", untouched},
		{"one featuregate", "featuregate service.profilesSupport", untouched},
		{"help", "--help", untouched},
		{"help, short", "-h", untouched},
		{"help of a subcommand", "validate --help", untouched},
		{"subcommand help", "help validate", untouched},
		{"version", "--version", untouched},
		{"version, short", "-v", untouched},
		{"completion", "completion bash", untouched},
		{"unknown subcommand", "start", untouched},
		{"unknown flag", "--conf=x.yaml", untouched},
		{"single dash", "-config=x.yaml", untouched},
		{"config without a value", "--config", untouched},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"otelcol-profiles"}, strings.Fields(tt.args)...)
			before := slices.Clone(args)

			got := withDefaultConfig(args)

			assert.Equal(t, before, args, "the input was changed")
			if tt.want == untouched {
				assert.Equal(t, before, got)
				return
			}
			assert.Equal(t, slices.Insert(before, 1, "--config=yaml:"+defaultConfig), got)
		})
	}
	assert.Empty(t, withDefaultConfig(nil))
}

// Asking for the flags must not set them.
func TestWithDefaultConfigLeavesGatesAlone(t *testing.T) {
	withDefaultConfig([]string{"otelcol-profiles", "--feature-gates=-" + profilesGate})
	assert.True(t, gateEnabled(t, profilesGate), "%s was switched off", profilesGate)
}

func gateEnabled(t *testing.T, id string) bool {
	t.Helper()
	enabled, found := false, false
	featuregate.GlobalRegistry().VisitAll(func(gate *featuregate.Gate) {
		if gate.ID() == id {
			enabled, found = gate.IsEnabled(), true
		}
	})
	assert.True(t, found, "the collector has no feature gate %s", id)
	return enabled
}
