// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"fmt"
	"time"

	"github.com/google/pprof/profile"
)

// Comparison is a selection as one pprof, minus that of a base, if there is one.
type Comparison struct {
	Pprof *profile.Profile
	// Result is the sum of the selection, without the base.
	Result *Result
	// Factor is the factor of the base's values.
	Factor float64
	// Notes tell a reader how to understand the sums.
	Notes []string
}

// Compare merges the selected profiles of a source, and subtracts those that base selects from baseSource, unless base
// is nil. Of intervals the base is multiplied by the ratio of the time ranges, of which one without an end ends now. Apart
// is that of Difference.
func Compare(ctx context.Context, source *Source, sel *Selection, baseSource *Source, base *Selection, now time.Time, apart bool) (*Comparison, error) {
	result, err := source.Merge(ctx, sel, true)
	if err != nil {
		return nil, err
	}
	c := &Comparison{Result: result, Factor: 1}
	if c.Pprof, err = result.Pprof(ctx); err != nil {
		return nil, err
	}
	snapshots, cumulative := result.Snapshots()
	if len(cumulative) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("Values of %s count since the start of each process", several(cumulative, ", ")))
	}
	if result.Superseded > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("Only the last snapshot of each resource counts; earlier Profiles skipped: %d", result.Superseded))
	}
	if result.Ended > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("Only snapshots of living processes count; those of ended ones skipped: %d", result.Ended))
	}
	if base == nil || ctx.Err() != nil {
		return c, ctx.Err()
	}
	var p *profile.Profile
	subtracted, err := baseSource.Merge(ctx, base, true)
	if err == nil {
		p, err = subtracted.Pprof(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the base: %w", err)
	}
	if selected, ofBase := sel.length(now), base.length(now); !snapshots && selected > 0 && ofBase > 0 {
		c.Factor = selected / ofBase
	}
	c.Pprof, err = Difference(c.Pprof, p, c.Factor, source.Options.MaxMemory, apart)
	return c, err
}

// length returns the seconds of the time range, 0 if it has no start.
func (s *Selection) length(now time.Time) float64 {
	switch {
	case s.From.IsZero():
		return 0
	case s.To.IsZero():
		return now.Sub(s.From).Seconds()
	}
	return s.To.Sub(s.From).Seconds()
}
