// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"slices"

	"github.com/google/pprof/profile"
)

// RenderingFactor is how many times the Size of a profile a page of it takes at most, while it is made.
const RenderingFactor = 12

// Size estimates the bytes of p.
func Size(p *profile.Profile) int64 {
	size := int64(0)
	for _, s := range p.Sample {
		size += sampleSize(s)
	}
	for _, l := range p.Location {
		size += 200 + int64(len(l.Line))*80
	}
	for _, f := range p.Function {
		size += 240 + int64(len(f.Name)+len(f.SystemName)+len(f.Filename))*2
	}
	return size
}

func sampleSize(s *profile.Sample) int64 {
	size := 250 + int64(len(s.Location))*20 + int64(len(s.Value))*12
	for key, values := range s.Label {
		size += 200 + int64(len(key))
		for _, v := range values {
			size += 40 + int64(len(v))
		}
	}
	return size + int64(len(s.NumLabel))*300
}

// Prune returns a profile of at most limit bytes by Size: p, or else one that knows functions only, or else
// one without the smallest samples. lost is the part of all values that it lacks.
func Prune(p *profile.Profile, limit int64) (pruned *profile.Profile, lost float64, err error) {
	if Size(p) <= limit {
		return p, 0, nil
	}
	if slices.ContainsFunc(p.Location, func(l *profile.Location) bool { return len(l.Line) > 0 }) {
		if err := p.Aggregate(true, true, true, false, false, false); err != nil {
			return nil, 0, err
		}
	}
	for _, s := range p.Sample {
		label := s.Label["pprof::base"] // of the samples that a difference subtracts
		s.Label, s.NumLabel, s.NumUnit = nil, nil, nil
		if label != nil {
			s.Label = map[string][]string{"pprof::base": label}
		}
	}
	start, duration := p.TimeNanos, p.DurationNanos
	if p, err = profile.Merge([]*profile.Profile{p}); err != nil { // sums samples that have become equal
		return nil, 0, err
	}
	p.TimeNanos, p.DurationNanos = start, duration
	index, err := p.SampleIndexByName(p.DefaultSampleType)
	if err != nil {
		return nil, 0, err
	}
	value := func(s *profile.Sample) int64 { return max(s.Value[index], -s.Value[index]) }
	sum := func() (all float64) {
		for _, s := range p.Sample {
			all += float64(value(s))
		}
		return all
	}
	total := sum()
	slices.SortStableFunc(p.Sample, func(a, b *profile.Sample) int { return cmp.Compare(value(b), value(a)) })
	for Size(p) > limit && len(p.Sample) > 0 {
		kept := int64(float64(len(p.Sample)) * float64(limit) / float64(Size(p)))
		p.Sample = p.Sample[:min(kept, int64(len(p.Sample)-1))]
		p = p.Compact()
	}
	if total > 0 {
		lost = 1 - sum()/total
	}
	return p, lost, nil
}
