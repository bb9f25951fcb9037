// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
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

// Snapshots reports whether a Profile of the result is a snapshot, and the sample types of those whose values count
// since the start of a process.
func (r *Result) Snapshots() (found bool, cumulative []string) {
	dict := r.Profiles.Dictionary()
	for _, rp := range r.Profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				found = found || sampletypes.IsSnapshot(dict, p, sampletypes.SnapshotSampleTypes)
				typ := dictionary.ValidString(dict.StringTable(), p.SampleType().TypeStrindex())
				if sampletypes.TemporalityOf(dict, p.AttributeIndices()) == sampletypes.Cumulative && !slices.Contains(cumulative, typ) {
					cumulative = append(cumulative, typ)
				}
			}
		}
	}
	return found, cumulative
}

// TypesError says that a result has profiles that one pprof cannot hold.
type TypesError struct {
	Of        string   // profile types or period types
	Parameter string   // that selects one: type or service
	Choices   []string // values of the parameter, each of which selects profiles that one pprof holds
}

func (e *TypesError) Error() string {
	return "the selection has several " + e.Of + ": " + strings.Join(e.Choices, "; ")
}

// Pprof returns the result as one pprof: the sum of all resources, by sample type. The error is a
// *TypesError if the result has several profile types, or profiles with different period types. A total
// that overflows int64 is an error, too, unless the result is one pprof as it is: see CheckTotals.
func (r *Result) Pprof() (*profile.Profile, error) {
	kinds := r.kinds()
	if slices.ContainsFunc(kinds, func(k recordfile.Key) bool { return k.Type != kinds[0].Type }) {
		return nil, typesError(kinds, "profile types", "type", "service")
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
	start, end := pprofs[0].TimeNanos, int64(0)
	for _, p := range pprofs {
		if periodType(pprofs[0]) != periodType(p) {
			return nil, typesError(kinds, "period types", "service", "type")
		}
		if start == 0 || p.TimeNanos != 0 && p.TimeNanos < start {
			start = p.TimeNanos
		}
		if p.DurationNanos > 0 && p.DurationNanos <= math.MaxInt64-p.TimeNanos {
			end = max(end, p.TimeNanos+p.DurationNanos)
		}
	}
	merged, err := mergePprofs(pprofs)
	if err == nil {
		merged.TimeNanos, merged.DurationNanos = start, max(0, end-start) // Merge adds durations
	}
	return merged, err
}

// kinds returns the keys of the result, each once. They have no Snapshot.
func (r *Result) kinds() (kinds []recordfile.Key) {
	text := func(i int32) string { return dictionary.ValidString(r.Profiles.Dictionary().StringTable(), i) }
	for _, rp := range r.Profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			k := recordfile.Key{Service: textOf(rp.Resource().Attributes(), serviceName), Type: textOf(sp.Scope().Attributes(), sampletypes.ProfileTypeAttribute)}
			for i, t := range sampletypes.Of(sp, text) {
				period := sp.Profiles().At(i).PeriodType()
				k.SampleType, k.Unit, k.PeriodType, k.PeriodUnit = t.Type, t.Unit, text(period.TypeStrindex()), text(period.UnitStrindex())
				if !slices.Contains(kinds, k) {
					kinds = append(kinds, k)
				}
			}
		}
	}
	return kinds
}

// typesError tells kinds apart by the first parameter that does it.
func typesError(kinds []recordfile.Key, of string, parameters ...string) error {
	e := &TypesError{Of: of}
	for _, e.Parameter = range parameters {
		for _, k := range kinds {
			values := []string{k.Type, k.Type + ":" + k.SampleType, TypeID(&k)}
			if e.Parameter == "service" {
				values = []string{k.Service}
			}
			i := slices.IndexFunc(values, func(value string) bool { return value != "" && selectsOne(kinds, e.Parameter, value) })
			if i >= 0 && !slices.Contains(e.Choices, values[i]) {
				e.Choices = append(e.Choices, values[i])
			}
		}
		if len(e.Choices) > 0 {
			slices.Sort(e.Choices)
			return e
		}
	}
	return fmt.Errorf("the selection has several %s; %s", of, narrow)
}

// selectsOne reports whether a value selects profiles that one pprof holds.
func selectsOne(kinds []recordfile.Key, parameter, value string) bool {
	sel := &Selection{Types: []string{value}}
	if parameter == "service" {
		sel = &Selection{Services: []string{value}}
	}
	var first *recordfile.Key
	for _, k := range kinds {
		if !sel.MatchesKey(&k) {
			continue
		}
		if first == nil {
			first = &k
		}
		if k.Type != first.Type || k.PeriodType != first.PeriodType || k.PeriodUnit != first.PeriodUnit {
			return false
		}
	}
	return true
}

// periodType writes the period type of a pprof as type/unit.
func periodType(p *profile.Profile) string {
	if t := p.PeriodType; t != nil && t.Type+t.Unit != "" {
		return t.Type + "/" + t.Unit
	}
	return "none"
}
