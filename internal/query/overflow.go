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

// CheckTotals returns an error if the absolute values of a sample type have a sum that overflows int64. What
// shows totals needs that, such as pprof's reports, which wrap.
func CheckTotals(p *profile.Profile) error { return checkTotals([]*profile.Profile{p}) }

// checkTotals is CheckTotals for all pprofs together, which have the same sample types.
func checkTotals(pprofs []*profile.Profile) error {
	types := pprofs[0].SampleType
	totals := make([]uint64, len(types))
	for _, p := range pprofs {
		for _, s := range p.Sample {
			for i, v := range s.Value {
				totals[i] += uint64(max(v, -v)) // 1<<63 for the least value, whose negative is itself
				if totals[i] > math.MaxInt64 {
					return overflowError(types[i])
				}
			}
		}
	}
	return nil
}

// mergePprofs is profile.Merge, which wraps, for pprofs with the same sample types whose totals fit.
func mergePprofs(pprofs []*profile.Profile) (*profile.Profile, error) {
	if err := checkTotals(pprofs); err != nil {
		return nil, err
	}
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
