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

// CheckTotals returns an error if the absolute values of a sample type have a sum, in all pprofs together, that
// overflows int64. Code that shows totals needs that check: pprof's reports wrap.
func CheckTotals(pprofs ...*profile.Profile) error {
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

// maxTypes is how many sample types a pprof may have: its readers take no more.
const maxTypes = 1024

// checkTypes returns an error if a pprof would have more sample types.
func checkTypes(types []*profile.ValueType) error {
	if len(types) <= maxTypes {
		return nil
	}
	return fmt.Errorf("the selection has %d sample types, and a pprof at most %d: select some by type, such as %s, %s or %s",
		len(types), maxTypes, types[0].Type, types[1].Type, types[2].Type)
}

// valuesError says that a pprof would take too much memory.
func valuesError(maxMemory int64) error {
	return fmt.Errorf("a pprof has a value for each of its samples and sample types, and these take more than %d MiB of memory, "+
		"a quarter of the memory limit: select fewer sample types, or %s", maxMemory/windowShare>>20, narrow)
}

// maxValues is how many values a pprof may have.
func maxValues(maxMemory int64) int {
	const valueSize = 8
	return int(maxMemory / windowShare / valueSize)
}

// mergePprofs is profile.Merge for pprofs with any sample types, of which a value that a pprof does not have is 0. Sums
// that would wrap are an error, and so are more values than maxMemory has room for.
func mergePprofs(pprofs []*profile.Profile, maxMemory int64) (*profile.Profile, error) {
	if err := CheckTotals(pprofs...); err != nil {
		return nil, err
	}
	var types []*profile.ValueType
	samples, column := 0, map[profile.ValueType]int{}
	for _, p := range pprofs {
		samples += len(p.Sample)
		for _, t := range p.SampleType {
			if _, known := column[*t]; !known {
				column[*t] = len(types)
				types = append(types, t)
			}
		}
	}
	if err := checkTypes(types); err != nil {
		return nil, err
	}
	if samples > 0 && len(types) > maxValues(maxMemory)/samples {
		return nil, valuesError(maxMemory)
	}
	for _, p := range pprofs {
		columns := make([]int, len(p.SampleType))
		for i, t := range p.SampleType {
			columns[i] = column[*t]
		}
		for _, s := range p.Sample {
			values := make([]int64, len(types))
			for i, v := range s.Value {
				values[columns[i]] += v // a pprof may have a sample type twice
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

// Difference returns p minus base, with the time of p. factor is that of the values of a sample type of the base. Samples whose difference is 0
// are left out, unless apart keeps those of the base apart, with the label of go tool pprof -diff_base. Values whose total overflows int64 are
// an error, and so are more values than maxMemory has room for.
func Difference(p, base *profile.Profile, factor func(*profile.ValueType) float64, maxMemory int64, apart bool) (*profile.Profile, error) {
	p, base = p.Copy(), base.Copy()
	factors := make([]float64, len(base.SampleType))
	for i, t := range base.SampleType {
		factors[i] = factor(t)
	}
	for _, s := range base.Sample {
		for i, v := range s.Value {
			scaled := math.Round(float64(v) * factors[i])
			switch {
			case factors[i] == 1 && v != math.MinInt64:
				s.Value[i] = -v // exact beyond 1<<53, too
			case math.Abs(scaled) >= 1<<63:
				return nil, overflowError(base.SampleType[i])
			default:
				s.Value[i] = -int64(scaled)
			}
		}
	}
	if apart {
		base.SetLabel("pprof::base", []string{"true"})
	}
	start, duration := p.TimeNanos, p.DurationNanos
	merged, err := mergePprofs([]*profile.Profile{p, base}, maxMemory)
	if err == nil {
		merged.TimeNanos, merged.DurationNanos = start, duration
	}
	return merged, err
}
