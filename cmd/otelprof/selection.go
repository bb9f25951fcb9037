// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/pflag"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// selection is the flags that say which profiles count.
type selection struct {
	services, types      []string
	from, to             string
	traceID, spanID      string
	attributes, resource []string
}

func (s *selection) addTo(flags *pflag.FlagSet) {
	s.addWithoutEnd(flags)
	flags.StringVar(&s.to, "to", "", "end of the time range, which it does not include")
}

// addWithoutEnd is for convert, whose flag --to is the format, too.
func (s *selection) addWithoutEnd(flags *pflag.FlagSet) {
	flags.StringArrayVar(&s.services, "service", nil, "service.name of the resource (repeat it for several)")
	flags.StringArrayVar(&s.types, "type", nil, "profile type (heap), sample type (alloc_space) or both (mutex:delay) (repeat it for several)")
	flags.StringVar(&s.from, "from", "", "start of the time range: RFC 3339, or relative to now, such as -15m")
	flags.StringVar(&s.traceID, "trace-id", "", "samples of this trace: 32 hex digits")
	flags.StringVar(&s.spanID, "span-id", "", "samples of this span: 16 hex digits")
	flags.StringArrayVar(&s.attributes, "attribute", nil, "KEY=VALUE of a sample or profile (repeat it for several, of which all must match)")
	flags.StringArrayVar(&s.resource, "resource", nil, "KEY=VALUE of the resource (repeat it for several, of which all must match)")
}

func (s *selection) parse(now time.Time) (sel *query.Selection, err error) {
	sel = &query.Selection{Services: s.services, Types: s.types}
	if sel.From, sel.To, err = parseRange("", s.from, s.to, now); err != nil {
		return nil, err
	}
	if err := parseID("--trace-id", s.traceID, sel.TraceID[:]); err != nil {
		return nil, err
	}
	if err := parseID("--span-id", s.spanID, sel.SpanID[:]); err != nil {
		return nil, err
	}
	if sel.Attributes, err = parsePairs("--attribute", s.attributes); err != nil {
		return nil, err
	}
	sel.Resource, err = parsePairs("--resource", s.resource)
	return sel, err
}

func parseRange(prefix, from, to string, now time.Time) (start, end time.Time, err error) {
	if start, err = parseTime("--"+prefix+"from", from, now); err != nil {
		return
	}
	if end, err = parseTime("--"+prefix+"to", to, now); err != nil {
		return
	}
	if !start.IsZero() && !end.IsZero() && !start.Before(end) {
		err = usage("--%sfrom is %s: must be before --%sto, which is %s", prefix, from, prefix, to)
	}
	return
}

func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago <= 0 {
		return now.Add(ago), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Before(time.Unix(0, 0)) || t.Year() > 2200 {
		return time.Time{}, usage("%s is %q: must be a time such as 2026-11-22T10:00:00Z, or relative to now, such as -15m", flag, text)
	}
	return t, nil
}

func parseID(flag, text string, id []byte) error {
	if text == "" {
		return nil
	}
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != len(id) || strings.Trim(text, "0") == "" {
		return usage("%s is %q: must be %d hex digits that are not all 0", flag, text, 2*len(id))
	}
	copy(id, decoded)
	return nil
}

func parsePairs(flag string, pairs []string) (map[string]string, error) {
	parsed := map[string]string{}
	for _, pair := range pairs {
		key, value, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, usage("%s is %q: must be KEY=VALUE", flag, pair)
		}
		parsed[key] = value
	}
	return parsed, nil
}

// comparison is a selection, and maybe a base to subtract from it.
type comparison struct {
	selection
	base           []string
	baseFrom       string
	baseTo         string
	now            time.Time
	sel, baseRange *query.Selection
}

func (c *comparison) addTo(flags *pflag.FlagSet) {
	c.selection.addTo(flags)
	c.addBase(flags)
}

func (c *comparison) addBase(flags *pflag.FlagSet) {
	flags.StringArrayVar(&c.base, "base", nil, "file or directory to subtract (repeat it for several); the other flags select from it, too")
	flags.StringVar(&c.baseFrom, "base-from", "", "start of the time range to subtract, by default from the same files")
	flags.StringVar(&c.baseTo, "base-to", "", "end of the time range to subtract")
}

func (c *comparison) hasBase() bool { return len(c.base) > 0 || c.baseFrom != "" || c.baseTo != "" }

func (c *comparison) parse() (err error) {
	c.now = time.Now()
	if c.sel, err = c.selection.parse(c.now); err != nil {
		return err
	}
	base := *c.sel
	if c.baseFrom != "" || c.baseTo != "" {
		if base.From, base.To, err = parseRange("base-", c.baseFrom, c.baseTo, c.now); err != nil {
			return err
		}
	}
	c.baseRange = &base
	return nil
}

// factor is what the base is multiplied by, so that ranges of different lengths compare: 1 unless
// both are stated.
func (c *comparison) factor() float64 {
	length := func(s *query.Selection) float64 {
		if s.From.IsZero() {
			return 0
		}
		to := s.To
		if to.IsZero() {
			to = c.now
		}
		return to.Sub(s.From).Seconds()
	}
	selected, base := length(c.sel), length(c.baseRange)
	if selected <= 0 || base <= 0 {
		return 1
	}
	return selected / base
}

// merge sums the selected profiles of paths.
func (a *app) merge(ctx context.Context, paths []string, sel *query.Selection, total bool) (*query.Result, error) {
	source, finish, err := a.source(paths)
	if err != nil {
		return nil, err
	}
	defer finish()
	return source.Merge(ctx, sel, total)
}

// pprof returns the selected profiles as one pprof, minus those of the base, and their sum
// without the base.
func (a *app) pprof(ctx context.Context, paths []string, c *comparison) (*profile.Profile, *query.Result, error) {
	result, err := a.merge(ctx, paths, c.sel, true)
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
	if err != nil || !c.hasBase() {
		return p, result, err
	}
	basePaths := c.base
	if len(basePaths) == 0 {
		basePaths = paths
	}
	base, err := a.merge(ctx, basePaths, c.baseRange, true)
	if err != nil {
		return nil, nil, baseError(err)
	}
	basePprof, err := base.Pprof()
	if err != nil {
		return nil, nil, baseError(err)
	}
	factor := 1.0
	if result.Intervals() {
		factor = c.factor()
	}
	if factor != 1 {
		a.note("the base is multiplied by %.4g, the ratio of the lengths of the time ranges", factor)
	}
	p, err = query.Difference(p, basePprof, factor)
	return p, result, err
}
