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
		e := &TypesError{}
		for typ, samples := range groups {
			if typ == "" { // unknown: each can be selected by its sample type
				e.Types = append(e.Types, ":"+strings.Join(samples, ", :"))
			} else {
				e.Types = append(e.Types, fmt.Sprintf("%s (%s)", typ, strings.Join(samples, ", ")))
			}
		}
		slices.Sort(e.Types)
		return nil, e
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
		for _, sampleTypes := range groups {
			if first, other := periodType(pprofs[0]), periodType(p); first != other && len(sampleTypes) > 1 {
				return nil, &TypesError{Types: sampleTypes}
			} else if first != other {
				return nil, fmt.Errorf("the profiles of %s have several period types, such as %s and %s; %s", sampleTypes[0], first, other, narrow)
			}
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

// periodType writes the period type of a pprof as type/unit.
func periodType(p *profile.Profile) string {
	if t := p.PeriodType; t != nil && t.Type+t.Unit != "" {
		return t.Type + "/" + t.Unit
	}
	return "none"
}
