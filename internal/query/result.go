// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Result is the sum of a selection.
type Result struct {
	Profiles pprofile.Profiles
	// Superseded is the number of Profiles that a later snapshot replaced.
	Superseded int
}

// WritePprof writes p as a gzipped pprof with all labels: see pproftranslator.WritePprof.
func WritePprof(w io.Writer, p *profile.Profile) error {
	compressed := gzip.NewWriter(w)
	return errors.Join(pproftranslator.WritePprof(compressed, p), compressed.Close())
}

// Cumulative returns the sample types whose values count since the start of a process.
func (r *Result) Cumulative() (types []string) {
	dict := r.Profiles.Dictionary()
	for p := range profilesOf(r.Profiles) {
		typ := dictionary.ValidString(dict.StringTable(), p.SampleType().TypeStrindex())
		if sampletypes.TemporalityOf(dict, p.AttributeIndices()) == sampletypes.Cumulative && !slices.Contains(types, typ) {
			types = append(types, typ)
		}
	}
	return types
}

// Intervals reports whether no Profile of the result is a snapshot.
func (r *Result) Intervals() bool {
	for p := range profilesOf(r.Profiles) {
		if sampletypes.IsSnapshot(r.Profiles.Dictionary(), p, sampletypes.SnapshotSampleTypes) {
			return false
		}
	}
	return true
}

// TypesError says that a result has profiles that one pprof cannot hold.
type TypesError struct {
	Types []string // each a profile type, if it is known, with its sample types
}

func (e *TypesError) Error() string {
	return "the selection has several profile types: " + strings.Join(e.Types, "; ")
}

// Pprof returns the result as one pprof: the sum of all resources, by sample type. The error is a
// *TypesError if the result has several profile types, or profiles with different period types. A total
// that overflows int64 is an error, too, unless the result is one pprof as it is: see CheckTotals.
func (r *Result) Pprof() (*profile.Profile, error) {
	groups := r.sampleTypes()
	if len(groups) > 1 {
		return nil, typesError(groups)
	}
	pprofs, err := pproftranslator.Marshaler{}.ConvertProfiles(r.Profiles)
	switch {
	case err != nil:
		return nil, err
	case len(pprofs) == 0:
		return nil, ErrEmpty
	case len(pprofs) == 1:
		return pprofs[0], nil
	}
	for _, sampleTypes := range groups {
		if err := checkPeriodTypes(pprofs, sampleTypes); err != nil {
			return nil, err
		}
	}
	start, end := span(pprofs)
	merged, err := mergePprofs(pprofs)
	if err == nil {
		merged.TimeNanos, merged.DurationNanos = start, end-start // Merge adds durations
	}
	return merged, err
}

// sampleTypes returns the sample types of each profile type.
func (r *Result) sampleTypes() map[string][]string {
	groups := map[string][]string{}
	text := func(i int32) string { return dictionary.ValidString(r.Profiles.Dictionary().StringTable(), i) }
	for _, rp := range r.Profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			typ := textOf(sp.Scope().Attributes(), sampletypes.ProfileTypeAttribute)
			for _, t := range sampletypes.Of(sp, text) {
				if !slices.Contains(groups[typ], t.Type) {
					groups[typ] = append(groups[typ], t.Type)
				}
			}
		}
	}
	return groups
}

// checkPeriodTypes returns an error unless the pprofs, of one profile type with these sample types, have the same
// period type.
func checkPeriodTypes(pprofs []*profile.Profile, sampleTypes []string) error {
	for _, p := range pprofs[1:] {
		switch {
		case samePeriodType(p, pprofs[0]):
		case len(sampleTypes) > 1:
			return &TypesError{Types: sampleTypes}
		default:
			return fmt.Errorf("the profiles of %s have several period types, such as %s and %s; %s",
				sampleTypes[0], periodType(pprofs[0]), periodType(p), narrow)
		}
	}
	return nil
}

// span returns the range that the pprofs cover: the earliest start and the latest end.
func span(pprofs []*profile.Profile) (start, end int64) {
	for _, p := range pprofs {
		if p.TimeNanos != 0 && (start == 0 || p.TimeNanos < start) {
			start = p.TimeNanos
		}
	}
	end = start
	for _, p := range pprofs {
		if p.DurationNanos > 0 && p.DurationNanos <= math.MaxInt64-p.TimeNanos {
			end = max(end, p.TimeNanos+p.DurationNanos)
		}
	}
	return start, end
}

func typesError(groups map[string][]string) error {
	e := &TypesError{}
	for typ, samples := range groups {
		if typ == "" { // unknown: each can be selected by its sample type
			e.Types = append(e.Types, ":"+strings.Join(samples, ", :"))
		} else {
			e.Types = append(e.Types, fmt.Sprintf("%s (%s)", typ, strings.Join(samples, ", ")))
		}
	}
	slices.Sort(e.Types)
	return e
}

func samePeriodType(a, b *profile.Profile) bool {
	return a.PeriodType == nil && b.PeriodType == nil ||
		a.PeriodType != nil && b.PeriodType != nil && *a.PeriodType == *b.PeriodType
}

// periodType writes the period type of a pprof as type/unit.
func periodType(p *profile.Profile) string {
	if t := p.PeriodType; t != nil && t.Type+t.Unit != "" {
		return t.Type + "/" + t.Unit
	}
	return "none"
}

// unite gives all pprofs, whose totals fit, the sample types of all, in one order. A value that a pprof does not have is 0.
func unite(pprofs []*profile.Profile) {
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
		if slices.EqualFunc(p.SampleType, types, func(a, b *profile.ValueType) bool { return *a == *b }) {
			continue
		}
		for _, s := range p.Sample {
			values := make([]int64, len(types))
			for i, v := range s.Value {
				values[place(p.SampleType[i])] += v // a pprof may have a sample type twice
			}
			s.Value = values
		}
		p.SampleType = types
	}
}

// Difference returns p minus base times factor, with the time of p. Samples whose difference is 0 are left out.
// Values whose total overflows int64 are an error.
func Difference(p, base *profile.Profile, factor float64) (*profile.Profile, error) {
	if !samePeriodType(p, base) {
		return nil, errors.New("the base has another profile type than the selection")
	}
	p, base = p.Copy(), base.Copy()
	if err := subtract(base, factor); err != nil {
		return nil, err
	}
	start, duration := p.TimeNanos, p.DurationNanos
	merged, err := mergePprofs([]*profile.Profile{p, base})
	if err == nil {
		merged.TimeNanos, merged.DurationNanos = start, duration
	}
	return merged, err
}

func profilesOf(pd pprofile.Profiles) iter.Seq[pprofile.Profile] {
	return func(yield func(pprofile.Profile) bool) {
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}
