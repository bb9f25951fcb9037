// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"os"
	"slices"
	"testing"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/collector/otelcol"
)

//go:embed default-config.yaml
var embeddedConfig string

func init() {
	defaultConfig = embeddedConfig
	if !testing.Testing() { // a test binary has a command line of its own
		os.Args = withDefaultConfig(os.Args)
	}
}

// withDefaultConfig returns args, the program's name first, with the default
// config added where they run something that takes a --config and name none.
// Arguments that the collector would refuse, or answer with its help or its
// version, come back as they are.
func withDefaultConfig(args []string) []string {
	if len(args) == 0 {
		return args
	}
	// This command only lends its flags and subcommands; the generated main
	// makes the one that runs.
	command, rest, err := otelcol.NewCommand(otelcol.CollectorSettings{}).Find(args[1:])
	if err != nil || command.Flags().Lookup(configFlag) == nil {
		return args
	}
	named := false
	// ParseAll reads flags without setting them: feature gates stay untouched.
	// It knows no --help and no --version, so these are errors here.
	err = command.Flags().ParseAll(rest, func(flag *pflag.Flag, _ string) error {
		named = named || flag.Name == configFlag
		return nil
	})
	if err != nil || named {
		return args
	}
	// Directly after the name: behind a "--" it would not be a flag.
	return slices.Insert(slices.Clone(args), 1, "--"+configFlag+"=yaml:"+defaultConfig)
}
