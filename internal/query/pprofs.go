// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/google/pprof/profile"
)

func overflowError(t *profile.ValueType) error {
	return fmt.Errorf("the sum of %s/%s does not fit into 64 bits; %s", t.Type, t.Unit, narrow)
}

// CheckTotals returns an error if the absolute values of a sample type have a sum, in all pprofs together, that
// overflows int64. Code that shows totals needs that check: pprof's reports wrap.
func CheckTotals(pprofs ...*profile.Profile) error {
	totals := map[profile.ValueType]uint64{}
	for _, p := range pprofs {
		for i, t := range p.SampleType {
			for _, s := range p.Sample {
				v := s.Value[i]
				totals[*t] += uint64(max(v, -v)) // 1<<63 for the least value, whose negative is itself
				if totals[*t] > math.MaxInt64 {
					return overflowError(t)
				}
			}
		}
	}
	return nil
}

// mergePprofs is profile.Merge for pprofs with any sample types, of which a value that a pprof does not have is 0. Sums
// that would wrap are an error.
func mergePprofs(pprofs []*profile.Profile) (*profile.Profile, error) {
	if err := CheckTotals(pprofs...); err != nil {
		return nil, err
	}
	var types []*profile.ValueType
	place := func(t *profile.ValueType) int {
		return slices.IndexFunc(types, func(have *profile.ValueType) bool { return *have == *t })
	}
	for _, p := range pprofs {
		for _, t := range p.SampleType {
			if place(t) < 0 {
				types = append(types, t)
			}
		}
	}
	for _, p := range pprofs {
		for _, s := range p.Sample {
			values := make([]int64, len(types))
			for i, v := range s.Value {
				values[place(p.SampleType[i])] += v // a pprof may have a sample type twice
			}
			s.Value = values
		}
		p.SampleType = types
	}
	return profile.Merge(pprofs)
}

// KeepDefault drops all sample types of p but pprof's default, which it returns.
func KeepDefault(p *profile.Profile) (string, error) {
	i, err := p.SampleIndexByName("")
	if err != nil {
		return "", err
	}
	p.SampleType = p.SampleType[i : i+1]
	for _, s := range p.Sample {
		s.Value = s.Value[i : i+1]
	}
	return p.SampleType[0].Type, nil
}

// Difference returns p minus base times factor, with the time of p. Samples whose difference is 0 are left out.
// Values whose total overflows int64 are an error.
func Difference(p, base *profile.Profile, factor float64) (*profile.Profile, error) {
	if periodType(p) != periodType(base) {
		return nil, errors.New("the base has another profile type than the selection")
	}
	p, base = p.Copy(), base.Copy()
	for _, s := range base.Sample {
		for i, v := range s.Value {
			scaled := math.Round(float64(v) * factor)
			switch {
			case factor == 1 && v != math.MinInt64:
				s.Value[i] = -v // exact beyond 1<<53, too
			case math.Abs(scaled) >= 1<<63:
				return nil, overflowError(base.SampleType[i])
			default:
				s.Value[i] = -int64(scaled)
			}
		}
	}
	start, duration := p.TimeNanos, p.DurationNanos
	merged, err := mergePprofs([]*profile.Profile{p, base})
	if err == nil {
		merged.TimeNanos, merged.DurationNanos = start, duration
	}
	return merged, err
}
