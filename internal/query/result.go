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
	if slices.ContainsFunc(kinds, func(k kind) bool { return k.profileType != kinds[0].profileType }) {
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

// kind is what profiles that one pprof holds have in common, and the ways to select them.
type kind struct{ service, profileType, sampleType, periodType string }

// kinds returns the kinds of the result, each once.
func (r *Result) kinds() (kinds []kind) {
	text := func(i int32) string { return dictionary.ValidString(r.Profiles.Dictionary().StringTable(), i) }
	for _, rp := range r.Profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			k := kind{service: textOf(rp.Resource().Attributes(), serviceName), profileType: textOf(sp.Scope().Attributes(), sampletypes.ProfileTypeAttribute)}
			for i, t := range sampletypes.Of(sp, text) {
				period := sp.Profiles().At(i).PeriodType()
				k.sampleType, k.periodType = t.Type, text(period.TypeStrindex())+"/"+text(period.UnitStrindex())
				if !slices.Contains(kinds, k) {
					kinds = append(kinds, k)
				}
			}
		}
	}
	return kinds
}

// typesError tells kinds apart by the first parameter that does it.
func typesError(kinds []kind, of string, parameters ...string) error {
	e := &TypesError{Of: of}
	for _, e.Parameter = range parameters {
		for _, k := range kinds {
			values := []string{k.profileType, k.profileType + ":" + k.sampleType}
			if e.Parameter == "service" {
				values = []string{k.service}
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
func selectsOne(kinds []kind, parameter, value string) bool {
	var first *kind
	for _, k := range kinds {
		if parameter == "type" && !(&Selection{Types: []string{value}}).matchesType(k.profileType, k.sampleType) || parameter == "service" && k.service != value {
			continue
		}
		if first == nil {
			first = &k
		}
		if k.profileType != first.profileType || k.periodType != first.periodType {
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
