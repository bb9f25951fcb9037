// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query/pgo"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

func (a *app) pgo() *cobra.Command {
	c := &cobra.Command{
		Use:   "pgo PATH... [-o FILE]",
		Short: "Write a small CPU profile for go build -pgo",
		Long: `Write the CPU profiles of a Go program as one for go build -pgo, which finds
default.pgo in the directory of the main package.

The file has what the compiler uses, which is the weight of each call: caller,
callee and line. The compiler decides the same as with the full profiles, and
the size of the file does not grow with the number of stacks.

Standard error and the comments of the file say of which versions and build IDs
it is, and when they were profiled.`,
		Example: `  otelprof pgo --service checkout -o default.pgo ./profiles
  otelprof pgo -o default.pgo cpu.pb.gz`,
		Args: paths,
	}
	sel := a.addSelection(c.Flags())
	output := c.Flags().StringP("output", "o", archive.Stdin, "`FILE` to write, - for standard output")
	c.RunE = func(c *cobra.Command, args []string) error {
		spooled, err := spool(args)
		defer spooled.remove()
		if err != nil {
			return err
		}
		source, err := a.source(spooled.paths)
		if err != nil {
			return err
		}
		made, err := pgo.Make(c.Context(), source, sel)
		if err != nil {
			return err
		}
		for _, note := range append(made.Notes, made.Facts()...) {
			a.note("%s", note)
		}
		if !made.Last.IsZero() {
			a.note("The newest profile ended %s", webui.Ago(max(0, a.now.Sub(made.Last))))
		}
		if made.WithoutStart > 0 {
			a.note("%.2g %% of the calls are of functions without a start line, which the compiler ignores", made.WithoutStart*100)
		}
		return a.writeTo(*output, func(w io.Writer) error { return query.WritePprof(w, made.Pprof) })
	}
	return c
}
