// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// addSelection adds the flags that say which profiles count.
func (a *app) addSelection(flags *pflag.FlagSet) *query.Selection {
	sel := &query.Selection{}
	set := func(key string) func(string) error { return func(text string) error { return sel.Set(key, text) } }
	flags.StringArrayVar(&sel.Services, "service", nil, "service.name of the resource, a `NAME` (repeat it for several)")
	flags.StringArrayVar(&sel.Types, "type", nil, "a `TYPE`: profile type (heap), sample type (alloc_space) or both (mutex:delay) (repeat it for several)")
	a.addRange(flags, "", "", &sel.From, &sel.To)
	flags.Func("trace-id", "samples of the trace with this `ID`: 32 hex digits", set("trace_id"))
	flags.Func("span-id", "samples of the span with this `ID`: 16 hex digits", set("span_id"))
	flags.Func("profile-id", "the profile with this `ID`, 32 hex digits or a UUID, until profiles are merged or compacted (repeat it for several)", set("profile_id"))
	flags.Func("label", "`KEY=VALUE` of a sample, its profile or its resource, or a selector, such as {pod=~\"a|b\"} (repeat it for several, of which all must match)", set("label"))
	return sel
}

// addRange adds --from and --to, with a prefix, which set a time range.
func (a *app) addRange(flags *pflag.FlagSet, prefix, of string, from, to *time.Time) {
	parse := func(t *time.Time) func(string) error {
		return func(text string) (err error) {
			if *t, err = query.ParseTime(text, a.now); err == nil && !from.IsZero() && !to.IsZero() && !from.Before(*to) {
				err = fmt.Errorf("must be a range: --%[1]sfrom before --%[1]sto", prefix)
			}
			return err
		}
	}
	flags.Func(prefix+"from", "start of the time range"+of+": a `TIME` in RFC 3339, or relative to now, such as -15m or -7d", parse(from))
	flags.Func(prefix+"to", "end of the time range"+of+", a `TIME` that it does not include", parse(to))
}

// comparison is a selection, and maybe a base to subtract from it.
type comparison struct {
	*query.Selection
	base      []string        // by default the same files
	replaced  query.Selection // what the base has in place of the selection
	symbolize symbolizer
}

func (a *app) addComparison(flags *pflag.FlagSet) *comparison {
	c := a.addSides(flags, " to subtract")
	flags.StringArrayVar(&c.base, "base", nil, "`PATH` of a file or directory to subtract (repeat it for several); the other flags select from it, too")
	return c
}

// addSides is addComparison without --base.
func (a *app) addSides(flags *pflag.FlagSet, ofBase string) *comparison {
	c := &comparison{Selection: a.addSelection(flags)}
	a.addRange(flags, "base-", ofBase, &c.replaced.From, &c.replaced.To)
	flags.StringArrayVar(&c.replaced.Services, "base-service", nil, "service.name"+ofBase+", a `NAME` (repeat it for several)")
	flags.Func("base-label", "label"+ofBase+", as --label, such as canary=false; it replaces labels with the same key", func(text string) error { return c.replaced.Set("label", text) })
	flags.StringArrayVar(&c.symbolize.directories, "symbolize", nil, "`DIR` with debug files or programs, for native frames that have only addresses (repeat it for several)")
	return c
}

// ofBase returns the selection of the base, or nil if there is none.
func (c *comparison) ofBase() *query.Selection {
	by := &c.replaced
	if len(c.base) == 0 && len(by.Services) == 0 && len(by.Labels) == 0 && by.From.IsZero() && by.To.IsZero() {
		return nil
	}
	return c.With(by)
}

// source is that of paths. It symbolizes what is selected, if that is asked for.
func (c *comparison) source(ctx context.Context, a *app, paths []string) (*query.Source, error) {
	source, err := a.source(paths)
	if err == nil {
		err = c.symbolize.use(ctx, a, source)
	}
	return source, err
}

// sources returns the files of the selection and those of the base, if there is one.
func (a *app) sources(ctx context.Context, paths []string, c *comparison) (source, baseSource *query.Source, err error) {
	base, pathsOfBase := c.ofBase(), c.base
	if len(pathsOfBase) == 0 {
		pathsOfBase = paths
	}
	if base != nil && slices.Contains(paths, archive.Stdin) && slices.Contains(pathsOfBase, archive.Stdin) {
		return nil, nil, errors.New("standard input can be read only once: name a file to compare it with itself")
	}
	source, err = c.source(ctx, a, paths)
	if err == nil && base != nil {
		baseSource, err = c.source(ctx, a, pathsOfBase)
	}
	return source, baseSource, err
}

// compare reads the selected profiles, and those of the base.
func (a *app) compare(ctx context.Context, paths []string, c *comparison) (*query.Comparison, error) {
	defer c.symbolize.close(a)
	source, baseSource, err := a.sources(ctx, paths, c)
	if err != nil {
		return nil, err
	}
	compared, err := query.Compare(ctx, source, c.Selection, baseSource, c.ofBase())
	if err != nil {
		return nil, err
	}
	for _, note := range compared.Notes {
		a.note("%s", note)
	}
	return compared, nil
}
