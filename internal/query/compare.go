// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
)

// Comparison is a selection as one pprof, minus that of a base, if there is one.
type Comparison struct {
	Pprof *profile.Profile
	// Result is the sum of the selection, without the base.
	Result *Result
	// Factor is the factor of the base's values.
	Factor float64
	// Base is the sum of the base, nil without one.
	Base *Result
	// RateOf is the sample type whose rates were compared, or nil. Rate and BaseRate are the sums of the series: Rate, Covered and Alive.
	RateOf         *profile.ValueType
	Rate, BaseRate rate.Summary
	// Notes tell a reader how to understand the sums.
	Notes []string
}

// Compare merges the selected profiles of a source, and subtracts those that base selects from baseSource, unless base
// is nil. Of intervals the base is multiplied so that rates are compared if both sources are Timed and the profiles have
// rates, and else by the ratio of the time ranges, of which one without an end ends now. Apart is that of Difference.
func Compare(ctx context.Context, source *Source, sel *Selection, baseSource *Source, base *Selection, now time.Time, apart bool) (*Comparison, error) {
	return compare(ctx, source, sel, baseSource, base, apart, func(_, _ *profile.Profile) (float64, error) {
		if selected, ofBase := sel.length(now), base.length(now); selected > 0 && ofBase > 0 {
			return selected / ofBase, nil
		}
		return 1, nil
	})
}

// CompareRates is Compare for one source and base. Of intervals the base is multiplied so that its total differs from that of the selection as
// their rates do, or not at all if the profiles have no rate.
func CompareRates(ctx context.Context, source *Source, sel, base *Selection, apart bool) (*Comparison, error) {
	var rated Comparison
	c, err := compare(ctx, source, sel, source, base, apart, func(selected, ofBase *profile.Profile) (float64, error) {
		rates, err := source.ratesOf(ctx, sel)
		if err != nil {
			return 1, err
		}
		before, err := source.ratesOf(ctx, base)
		if err != nil {
			return 1, err
		}
		sums, sumsBefore := totalsOf(selected), totalsOf(ofBase)
		for _, t := range selected.SampleType { // those of one pprof were counted in the same time
			timed, timedBefore := sums[t.Type]/rates[t.Type].Rate, sumsBefore[t.Type]/before[t.Type].Rate
			if factor := timed / timedBefore; factor > 0 && !math.IsInf(factor, 0) {
				rated.RateOf, rated.Rate, rated.BaseRate = t, rates[t.Type], before[t.Type]
				return factor, nil
			}
		}
		return 1, nil
	})
	if err == nil {
		c.RateOf, c.Rate, c.BaseRate = rated.RateOf, rated.Rate, rated.BaseRate
	}
	return c, err
}

// ratesOf returns the rates of the selected intervals by sample type, with what was profiled of the time of the processes.
func (s *Source) ratesOf(ctx context.Context, sel *Selection) (map[string]rate.Summary, error) {
	all, err := s.Series(ctx, sel, nil)
	rates := map[string]rate.Summary{}
	for _, of := range all {
		if !of.Snapshots {
			sum, summary := rates[of.SampleType], of.Summary(of.Bounds(sel))
			sum.Rate, sum.Covered, sum.Alive = sum.Rate+summary.Rate, sum.Covered+summary.Covered, sum.Alive+summary.Alive
			rates[of.SampleType] = sum
		}
	}
	return rates, err
}

// totalsOf returns the sums of a pprof by sample type.
func totalsOf(p *profile.Profile) map[string]float64 {
	sums := map[string]float64{}
	for _, sample := range p.Sample {
		for i, t := range p.SampleType {
			sums[t.Type] += float64(sample.Value[i])
		}
	}
	return sums
}

func compare(
	ctx context.Context, source *Source, sel *Selection, baseSource *Source, base *Selection, apart bool, factor func(selected, base *profile.Profile) (float64, error),
) (*Comparison, error) {
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
	if !snapshots {
		if c.Factor, err = factor(c.Pprof, p); err != nil {
			return nil, err
		}
	}
	if after, before := result.secondsOf(c.Pprof, sel), subtracted.secondsOf(p, base); after > 0 && before > 0 {
		c.Factor = after / before
	}
	c.Base = subtracted
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

// Shown returns the series of the sample type that readers of a pprof of the result see first, or nil.
func (r *Result) Shown(p *profile.Profile) *Series {
	shown, err := p.SampleIndexByName("")
	if err != nil {
		return nil
	}
	for _, of := range r.Series {
		if of.SampleType == p.SampleType[shown].Type && of.Unit == p.SampleType[shown].Unit {
			return of
		}
	}
	return nil
}

// secondsOf returns the seconds that the values of a pprof of the result are of, 0 if it has no rate.
func (r *Result) secondsOf(p *profile.Profile, sel *Selection) float64 {
	of := r.Shown(p)
	if of == nil || of.Snapshots {
		return 0
	}
	shown, _ := p.SampleIndexByName("") // it is the one of the series
	sum := 0.0
	for _, s := range p.Sample {
		sum += float64(s.Value[shown])
	}
	summary := of.Summary(of.Bounds(sel))
	return summary.Seconds(sum)
}
