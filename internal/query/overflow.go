// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"fmt"
	"math"

	"github.com/google/pprof/profile"
)

func overflowError(t *profile.ValueType) error {
	return fmt.Errorf("the sum of %s/%s does not fit into 64 bits; %s", t.Type, t.Unit, narrow)
}

// CheckTotals returns an error if the absolute values of a sample type have a sum that overflows int64. Code that
// shows totals needs that check: pprof's reports wrap.
func CheckTotals(p *profile.Profile) error { return checkTotals([]*profile.Profile{p}) }

// checkTotals is CheckTotals for all pprofs together.
func checkTotals(pprofs []*profile.Profile) error {
	totals := map[profile.ValueType]uint64{}
	for _, p := range pprofs {
		for i, t := range p.SampleType {
			total := totals[*t]
			for _, s := range p.Sample {
				v := s.Value[i]
				total += uint64(max(v, -v)) // 1<<63 for the least value, whose negative is itself
				if total > math.MaxInt64 {
					return overflowError(t)
				}
			}
			totals[*t] = total
		}
	}
	return nil
}

// mergePprofs is profile.Merge for pprofs with any sample types. Sums that would wrap are an error.
func mergePprofs(pprofs []*profile.Profile) (*profile.Profile, error) {
	if err := checkTotals(pprofs); err != nil {
		return nil, err
	}
	unite(pprofs)
	return profile.Merge(pprofs)
}

// subtract multiplies the values by -factor.
func subtract(p *profile.Profile, factor float64) error {
	for _, s := range p.Sample {
		for i, v := range s.Value {
			scaled := math.Round(float64(v) * factor)
			switch {
			case factor == 1 && v != math.MinInt64:
				s.Value[i] = -v // exact beyond 1<<53, too
			case math.Abs(scaled) >= 1<<63:
				return overflowError(p.SampleType[i])
			default:
				s.Value[i] = -int64(scaled)
			}
		}
	}
	return nil
}
