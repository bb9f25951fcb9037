// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/collector/otelcol"
	"go.uber.org/zap"
)

// The Makefile copies this file, defaults.go, pipelines.go and quiet.go into the distributions of config.

// version is that of the builder-config.yaml files. When make builds a program, the linker adds the
// commit to it.
var version = "0.1.0"

// defaultConfig is the configuration that the program runs without --config, if it has one.
var defaultConfig string

// newCommand returns the command line of the Collector with messages for people who start. The
// Makefile makes the generated main call it.
func newCommand(set otelcol.CollectorSettings) *cobra.Command {
	set.LoggingOptions = append(set.LoggingOptions, zap.WrapCore(quiet))
	resolver := &set.ConfigProviderSettings.ResolverSettings
	resolver.ConverterFactories = append(resolver.ConverterFactories, checkPipelines)
	command := otelcol.NewCommand(set)
	command.SetVersionTemplate("{{.Name}} version {{.Version}}" + buildDetails())
	command.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w\nRun '%s --help' for the flags", err, c.CommandPath())
	})
	command.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if flag := c.Flag(configFlag); flag == nil || flag.Changed || defaultConfig == "" {
			return nil
		}
		return c.Flags().Set(configFlag, "yaml:"+defaultConfig)
	}
	start := command.RunE
	command.RunE = func(c *cobra.Command, args []string) error { return explain(start(c, args), c.CommandPath()) }
	if validate, _, err := command.Find([]string{"validate"}); err == nil {
		announceValid(validate)
	}
	if printConfig, _, err := command.Find([]string{"print-config"}); err == nil {
		redactURLs(printConfig)
	}
	return command
}

// buildDetails returns the commit, if the version does not have it, and the versions of Go and of the
// Collector.
func buildDetails() string {
	commit, collector := "", "(unknown)"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && !strings.Contains(version, "+") {
				commit = "+" + setting.Value[:min(len(setting.Value), 12)]
			}
		}
		for _, module := range info.Deps {
			if module.Path == "go.opentelemetry.io/collector/otelcol" {
				collector = module.Version
			}
		}
	}
	return fmt.Sprintf("%s\n%s %s/%s, OpenTelemetry Collector %s\n", commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, collector)
}

// What may be secret in a URL: the user and the query, which ends with the line of YAML or JSON.
var (
	userOfURL  = regexp.MustCompile(`(\w://)[^\s/?]*@`)
	queryOfURL = regexp.MustCompile(`(?m)(\w://[^\s?]*\?).*?(["']?,?)$`)
)

// redactURLs makes print-config hide what may be secret in URLs, unless the mode is unredacted.
func redactURLs(printConfig *cobra.Command) {
	run := printConfig.RunE
	printConfig.RunE = func(c *cobra.Command, args []string) error {
		if strings.EqualFold(c.Flag("mode").Value.String(), "unredacted") {
			return run(c, args)
		}
		out, printed := c.OutOrStdout(), &strings.Builder{}
		c.SetOut(printed)
		err := run(c, args)
		text := userOfURL.ReplaceAllString(printed.String(), "${1}REDACTED@")
		_, writeErr := io.WriteString(out, queryOfURL.ReplaceAllString(text, "${1}REDACTED${2}"))
		return cmp.Or(err, writeErr)
	}
}

// announceValid makes validate say what is valid. The Collector's says nothing.
func announceValid(validate *cobra.Command) {
	check := validate.RunE
	validate.RunE = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return err
		}
		source := strings.Trim(c.Flag(configFlag).Value.String(), "[]")
		if defaultConfig != "" && strings.Contains(source, defaultConfig) {
			source = "the default configuration"
		}
		_, err := fmt.Fprintf(c.OutOrStdout(), "Valid: %s\nChecked: all keys and values, that the components of each pipeline exist and fit, and that the extensions they refer to start. "+
			"Not checked: addresses, directories and credentials.\n", source)
		return err
	}
}

const configFlag = "config"

// anotherCollector is the line that starts a second Collector on a machine.
const anotherCollector = "PPROF_LISTEN=localhost:4050 VIEW_LISTEN=localhost:4051 HEALTH_LISTEN=localhost:13134 METRICS_PORT=8889"

// explain adds advice to an error.
func explain(err error, program string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return fmt.Errorf(`%w
Another program listens there, perhaps another Collector. Shipped configurations take other addresses from variables:
  %s %s
In your own configuration, change the endpoint; for the metrics (port 8888), add --set=service.telemetry.metrics.level=none`, err, anotherCollector, program)
}
