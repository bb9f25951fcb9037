// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
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

	maxMemory int64 // of the query
}

// WritePprof writes p as a gzipped pprof with all labels: see pproftranslator.WritePprof.
func WritePprof(w io.Writer, p *profile.Profile) error {
	compressed := gzip.NewWriter(w)
	return errors.Join(pproftranslator.WritePprof(compressed, p), compressed.Close())
}

// Snapshots reports whether a Profile of the result is a snapshot, and the sample types of those whose values count
// since the start of a process.
func (r *Result) Snapshots() (found bool, cumulative []string) {
	dict, named := r.Profiles.Dictionary(), map[string]bool{}
	for p := range sampletypes.ProfilesOf(r.Profiles) {
		found = found || sampletypes.IsSnapshot(dict, p, sampletypes.SnapshotSampleTypes)
		typ := dictionary.ValidString(dict.StringTable(), p.SampleType().TypeStrindex())
		if sampletypes.TemporalityOf(dict, p.AttributeIndices()) == sampletypes.Cumulative && !named[typ] {
			named[typ] = true
			cumulative = append(cumulative, typ)
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
	of := e.Of
	if e.Parameter == "service" {
		of += ", in these services"
	}
	return "the selection has several " + of + ": " + several(e.Choices, "; ")
}

// several lists names, but not all of many.
func several(names []string, separator string) string {
	const most = 20
	if more := len(names) - most; more > 1 {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, separator)
}

// Pprof returns the result as one pprof: the sum of all resources, by sample type. The error is a
// *TypesError if the result has several profile types, or profiles with different period types. A total
// that overflows int64 is an error, too, unless the result is one pprof as it is: see CheckTotals. So are more sample
// types and values than a pprof may have.
func (r *Result) Pprof(ctx context.Context) (*profile.Profile, error) {
	kinds := r.kinds()
	if slices.ContainsFunc(kinds, func(k recordfile.Key) bool { return k.Type != kinds[0].Type }) {
		return nil, typesError(kinds, profileTypes, "type", "service")
	}
	if err := checkTypes(r.sampleTypes()); err != nil {
		return nil, err
	}
	pprofs, err := r.convert(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(pprofs) == 0:
		return nil, ErrEmpty
	case len(pprofs) == 1:
		return pprofs[0], nil
	}
	start, covered := pprofs[0].TimeNanos, sampletypes.Spans{}
	for _, p := range pprofs {
		if periodType(pprofs[0]) != periodType(p) {
			return nil, typesError(kinds, periodTypes, "service", "type")
		}
		if start == 0 || p.TimeNanos != 0 && p.TimeNanos < start {
			start = p.TimeNanos
		}
		covered.Add(uint64(p.TimeNanos), uint64(p.TimeNanos)+uint64(p.DurationNanos))
	}
	merged, err := mergePprofs(pprofs, r.maxMemory)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		merged.TimeNanos, merged.DurationNanos = start, int64(min(covered.Length(), math.MaxInt64)) // Merge adds durations
	}
	return merged, err
}

// convert returns the pprofs of the result.
func (r *Result) convert(ctx context.Context) (pprofs []*profile.Profile, err error) {
	for p, err := range (pproftranslator.Marshaler{MaxValues: maxValues(r.maxMemory)}).All(ctx, r.Profiles) {
		if errors.Is(err, pproftranslator.ErrMaxValues) {
			return nil, valuesError(r.maxMemory)
		}
		if err != nil {
			return nil, err
		}
		pprofs = append(pprofs, p.Profile)
	}
	return pprofs, ctx.Err()
}

// sampleTypes returns the sample types of the result, each once.
func (r *Result) sampleTypes() (types []*profile.ValueType) {
	text, seen := r.text(), map[sampletypes.Type]bool{}
	for _, rp := range r.Profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, t := range sampletypes.Of(sp, text) {
				if !seen[t] {
					seen[t] = true
					types = append(types, &profile.ValueType{Type: t.Type, Unit: t.Unit})
				}
			}
		}
	}
	return types
}

func (r *Result) text() func(int32) string {
	return func(i int32) string { return dictionary.ValidString(r.Profiles.Dictionary().StringTable(), i) }
}

// kinds returns the keys of the result, each once. They have no Snapshot.
func (r *Result) kinds() (kinds []recordfile.Key) {
	text, seen := r.text(), map[recordfile.Key]bool{}
	for _, rp := range r.Profiles.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			k := recordfile.Key{Service: dictionary.TextOf(rp.Resource().Attributes(), serviceName), Type: dictionary.TextOf(sp.Scope().Attributes(), sampletypes.ProfileTypeAttribute)}
			for i, t := range sampletypes.Of(sp, text) {
				period := sp.Profiles().At(i).PeriodType()
				k.SampleType, k.Unit, k.PeriodType, k.PeriodUnit = t.Type, t.Unit, text(period.TypeStrindex()), text(period.UnitStrindex())
				if !seen[k] {
					seen[k] = true
					kinds = append(kinds, k)
				}
			}
		}
	}
	return kinds
}

// typesError tells kinds apart by the first parameter that selects each of them, or else by the first that selects some.
func typesError(kinds []recordfile.Key, of string, parameters ...string) error {
	var partly *TypesError
	for _, parameter := range parameters {
		chosen, all := choicesOf(kinds, parameter)
		e := &TypesError{of, parameter, chosen}
		if all {
			return e
		}
		if partly == nil && len(chosen) > 0 {
			partly = e
		}
	}
	if partly != nil {
		return partly
	}
	return fmt.Errorf("the selection has several %s; %s", of, narrow)
}

// choicesOf returns values of a parameter each of which selects kinds that one pprof holds, and whether they select all.
func choicesOf(kinds []recordfile.Key, parameter string) (chosen []string, all bool) {
	selected := map[string]*recordfile.Key{} // by value: a key that it selects, nil if one pprof does not hold all of them
	for i := range kinds {
		k := &kinds[i]
		for _, value := range append(choices(k, parameter), k.SampleType) {
			if first, known := selected[value]; !known {
				selected[value] = k
			} else if first != nil && (k.Type != first.Type || k.PeriodType != first.PeriodType || k.PeriodUnit != first.PeriodUnit) {
				selected[value] = nil
			}
		}
	}
	all = true
	for i := range kinds {
		values := choices(&kinds[i], parameter)
		at := slices.IndexFunc(values, func(value string) bool { return value != "" && selected[value] != nil })
		if at < 0 {
			all = false
		} else {
			chosen = append(chosen, values[at])
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), all
}

// choices are the values of a parameter that select k, those first that select more.
func choices(k *recordfile.Key, parameter string) []string {
	if parameter == "service" {
		return []string{k.Service}
	}
	return []string{k.Type, k.Type + ":" + k.SampleType, TypeID(k)}
}

// periodType writes the period type of a pprof as type/unit.
func periodType(p *profile.Profile) string {
	if t := p.PeriodType; t != nil && t.Type+t.Unit != "" {
		return t.Type + "/" + t.Unit
	}
	return "none"
}
