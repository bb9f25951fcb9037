// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/pflag"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// addSelection adds the flags that say which profiles count.
func (a *app) addSelection(flags *pflag.FlagSet) *query.Selection {
	sel := &query.Selection{Attributes: map[string]string{}, Resource: map[string]string{}}
	flags.StringArrayVar(&sel.Services, "service", nil, "service.name of the resource (repeat it for several)")
	flags.StringArrayVar(&sel.Types, "type", nil, "profile type (heap), sample type (alloc_space) or both (mutex:delay) (repeat it for several)")
	a.addRange(flags, "", "", &sel.From, &sel.To)
	flags.Func("trace-id", "samples of this trace: 32 hex digits", parseID(sel.TraceID[:]))
	flags.Func("span-id", "samples of this span: 16 hex digits", parseID(sel.SpanID[:]))
	flags.Func("attribute", "`KEY=VALUE` of a sample or profile (repeat it for several, of which all must match)", parsePair(sel.Attributes))
	flags.Func("resource", "`KEY=VALUE` of the resource (repeat it for several, of which all must match)", parsePair(sel.Resource))
	return sel
}

// addRange adds --from and --to, with a prefix, which set a time range.
func (a *app) addRange(flags *pflag.FlagSet, prefix, of string, from, to *time.Time) {
	parse := func(t *time.Time) func(string) error {
		return func(text string) (err error) {
			if ago, err := time.ParseDuration(text); err == nil && ago <= 0 {
				*t = a.now.Add(ago)
			} else if *t, err = time.Parse(time.RFC3339, text); err != nil || t.Before(time.Unix(0, 0)) || t.Year() > 2200 {
				return errors.New("must be a time such as 2026-11-22T10:00:00Z, or relative to now, such as -15m")
			}
			if !from.IsZero() && !to.IsZero() && !from.Before(*to) {
				return fmt.Errorf("must be a range: --%[1]sfrom before --%[1]sto", prefix)
			}
			return nil
		}
	}
	flags.Func(prefix+"from", "start of the time range"+of+": RFC 3339, or relative to now, such as -15m", parse(from))
	flags.Func(prefix+"to", "end of the time range"+of+", which it does not include", parse(to))
}

func parseID(to []byte) func(string) error {
	return func(text string) error {
		if id, err := hex.DecodeString(text); err != nil || len(id) != len(to) || strings.Trim(text, "0") == "" {
			return fmt.Errorf("must be %d hex digits that are not all 0", 2*len(to))
		}
		_, err := hex.Decode(to, []byte(text))
		return err
	}
}

func parsePair(to map[string]string) func(string) error {
	return func(text string) error {
		key, value, found := strings.Cut(text, "=")
		if !found || key == "" {
			return errors.New("must be KEY=VALUE")
		}
		to[key] = value
		return nil
	}
}

// comparison is a selection, and maybe a base to subtract from it.
type comparison struct {
	*query.Selection
	base             []string // by default the same files
	baseFrom, baseTo time.Time
}

func (a *app) addComparison(flags *pflag.FlagSet) *comparison {
	c := &comparison{Selection: a.addSelection(flags)}
	flags.StringArrayVar(&c.base, "base", nil, "file or directory to subtract (repeat it for several); the other flags select from it, too")
	a.addRange(flags, "base-", " to subtract", &c.baseFrom, &c.baseTo)
	return c
}

// ofBase returns the selection of the base, or nil if there is none.
func (c *comparison) ofBase() *query.Selection {
	base := *c.Selection
	switch {
	case !c.baseFrom.IsZero() || !c.baseTo.IsZero():
		base.From, base.To = c.baseFrom, c.baseTo
	case len(c.base) == 0:
		return nil
	}
	return &base
}

// factor is what the base is multiplied by, so that ranges of different lengths compare: 1 unless
// both are stated.
func (a *app) factor(selected, base *query.Selection) float64 {
	length := func(s *query.Selection) float64 {
		switch {
		case s.From.IsZero():
			return 0
		case s.To.IsZero():
			return a.now.Sub(s.From).Seconds()
		}
		return s.To.Sub(s.From).Seconds()
	}
	if length(selected) <= 0 || length(base) <= 0 {
		return 1
	}
	return length(selected) / length(base)
}

// merge sums the selected profiles of paths.
func (a *app) merge(ctx context.Context, paths []string, sel *query.Selection, total bool) (*query.Result, error) {
	source, err := a.source(paths)
	if err != nil {
		return nil, err
	}
	return source.Merge(ctx, sel, total)
}

// pprof returns the selected profiles as one pprof, minus those of the base, and their sum
// without the base.
func (a *app) pprof(ctx context.Context, paths []string, c *comparison) (*profile.Profile, *query.Result, error) {
	result, err := a.merge(ctx, paths, c.Selection, true)
	if err != nil {
		return nil, nil, err
	}
	if result.Cumulative() {
		a.note("values count since the start of each process")
	}
	if result.Superseded > 0 {
		a.note("%d earlier snapshots are left out: the last one of each resource counts", result.Superseded)
	}
	p, err := result.Pprof()
	ofBase := c.ofBase()
	if err != nil || ofBase == nil {
		return p, result, err
	}
	if len(c.base) > 0 {
		paths = c.base
	}
	base, err := a.merge(ctx, paths, ofBase, true)
	if err != nil {
		return nil, nil, fmt.Errorf("base: %w", err)
	}
	basePprof, err := base.Pprof()
	if err != nil {
		return nil, nil, fmt.Errorf("base: %w", err)
	}
	factor := 1.0
	if result.Intervals() {
		factor = a.factor(c.Selection, ofBase)
	}
	if factor != 1 {
		a.note("the base is multiplied by %.4g, the ratio of the lengths of the time ranges", factor)
	}
	p, err = query.Difference(p, basePprof, factor)
	return p, result, err
}
