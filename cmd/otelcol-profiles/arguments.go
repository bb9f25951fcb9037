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

// withDefaultConfig returns args, which start with the program's name. If their
// command takes --config and they state none, it adds the default config. It does
// not change arguments that the collector rejects, or that ask for its help or version.
func withDefaultConfig(args []string) []string {
	if len(args) == 0 {
		return args
	}
	// This command is for its flags and subcommands only. The generated main
	// makes the one that runs.
	command, rest, err := otelcol.NewCommand(otelcol.CollectorSettings{}).Find(args[1:])
	if err != nil || command.Flags().Lookup(configFlag) == nil {
		return args
	}
	named := false
	// ParseAll does not set flags, which would change feature gates. For it, --help
	// and --version are unknown flags.
	err = command.Flags().ParseAll(rest, func(flag *pflag.Flag, _ string) error {
		named = named || flag.Name == configFlag
		return nil
	})
	if err != nil || named {
		return args
	}
	// Directly after the name, since after "--" it would be an argument.
	return slices.Insert(slices.Clone(args), 1, "--"+configFlag+"=yaml:"+defaultConfig)
}
