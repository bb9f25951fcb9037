// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Result is the sum of a selection.
type Result struct {
	Profiles pprofile.Profiles
	// Superseded is the number of Profiles that a later snapshot replaced.
	Superseded int
	// Ended is the number of snapshots that MergeTimed has left out as those of processes that have ended.
	Ended int
	// Series have the time of the processes, those of all services together. Only MergeTimed sets them.
	Series []*Series

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
	kinds := newKinds()
	kinds.add(r.Profiles)
	if err := kinds.err(); err != nil {
		return nil, err
	}
	var pprofs []*profile.Profile
	for p, err := range r.all(ctx) {
		if err != nil {
			return nil, r.explain(err)
		}
		pprofs = append(pprofs, p.Profile)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.unite(ctx, pprofs)
}

// all yields the pprofs of the result.
func (r *Result) all(ctx context.Context) iter.Seq2[pproftranslator.Converted, error] {
	return func(yield func(pproftranslator.Converted, error) bool) {
		for p, err := range (pproftranslator.Marshaler{MaxValues: maxValues(r.maxMemory)}).All(ctx, r.Profiles) {
			if err == nil {
				for _, f := range p.Profile.Function { // readers show nothing else
					f.Name = cmp.Or(f.Name, f.SystemName)
				}
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

func (r *Result) explain(err error) error {
	if errors.Is(err, pproftranslator.ErrMaxValues) {
		return valuesError(r.maxMemory)
	}
	return err
}

// unite makes one pprof of those of the result.
func (r *Result) unite(ctx context.Context, pprofs []*profile.Profile) (*profile.Profile, error) {
	switch len(pprofs) {
	case 0:
		return nil, ErrEmpty
	case 1:
		return pprofs[0], checkTypes(pprofs[0].SampleType)
	}
	start, covered := pprofs[0].TimeNanos, sampletypes.Spans{}
	for _, p := range pprofs {
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

// eachResource calls visit with the pprof of each resource. They are made in one pass: each resource alone would take as long as the
// dictionary is. Only those that have no room beside the others are made alone, at the end.
func (r *Result) eachResource(ctx context.Context, visit func(resource int, p *profile.Profile) error) error {
	var pprofs []*profile.Profile
	var alone []int
	resource, large := 0, false
	finish := func() error {
		of := pprofs
		pprofs = nil
		switch {
		case large:
			alone = append(alone, resource)
			large = false
			return nil
		case len(of) == 0:
			return nil
		}
		p, err := r.unite(ctx, of)
		if err != nil {
			return err
		}
		return visit(resource, p)
	}
	for p, err := range r.all(ctx) {
		if p.Resource != resource {
			if err := finish(); err != nil {
				return err
			}
			resource = p.Resource
		}
		switch {
		case errors.Is(err, pproftranslator.ErrMaxValues):
			large = true
		case err != nil:
			return err
		case !large:
			pprofs = append(pprofs, p.Profile)
		}
	}
	if err := finish(); err != nil {
		return err
	}
	for _, resource := range alone {
		only := pprofile.NewProfiles()
		r.Profiles.Dictionary().CopyTo(only.Dictionary())
		r.Profiles.ResourceProfiles().At(resource).CopyTo(only.ResourceProfiles().AppendEmpty())
		p, err := (&Result{Profiles: only, maxMemory: r.maxMemory}).Pprof(ctx)
		if err == nil {
			err = visit(resource, p)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// periodType writes the period type of a pprof as type/unit.
func periodType(p *profile.Profile) string {
	if t := p.PeriodType; t != nil && t.Type+t.Unit != "" {
		return t.Type + "/" + t.Unit
	}
	return "none"
}
