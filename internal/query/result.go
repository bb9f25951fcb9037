// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
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
	pprofs, err := r.convert(ctx)
	switch {
	case err != nil:
		return nil, err
	case len(pprofs) == 0:
		return nil, ErrEmpty
	case len(pprofs) == 1:
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

// EachPprof calls visit with a pprof of each record. The snapshots of a record are apart, by resource, and snapshot names
// their process: a resource or, in files other than OTLP, the file. It is "" of intervals. The error is a *TypesError if the
// records have several profile types, or profiles with different period types; it is ErrEmpty without any.
func (s *Source) EachPprof(ctx context.Context, sel *Selection, visit func(p *profile.Profile, snapshot string) error) error {
	kinds := newKinds()
	convert := func(record *archive.Record, pd pprofile.Profiles, snapshot string) error {
		if kinds.add(pd); kinds.differ() { // an error, when all kinds are known
			return nil
		}
		p, err := (&Result{Profiles: pd, maxMemory: s.Options.MaxMemory}).Pprof(ctx)
		if err != nil {
			return record.Fail(err)
		}
		return visit(p, snapshot)
	}
	err := s.Each(ctx, sel, func(record *archive.Record, pd pprofile.Profiles) error {
		if snapshots, _ := (&Result{Profiles: pd}).Snapshots(); !snapshots {
			return convert(record, pd, "")
		}
		return eachResource(pd, func(rp pprofile.ResourceProfiles) error {
			snapshot, err := json.Marshal(rp.Resource().Attributes().AsRaw()) // in the order of the keys
			if isOTLP := record.Encoding == archive.OTLPProto || record.Encoding == archive.OTLPJSON; err != nil || !isOTLP {
				snapshot = []byte(record.File) // which is of one process
			}
			return convert(record, pd, string(snapshot))
		})
	})
	switch {
	case err != nil:
		return err
	case len(kinds.all) == 0:
		return ErrEmpty
	}
	return kinds.err()
}

// eachResource calls visit while pd has one resource only, for each of them.
func eachResource(pd pprofile.Profiles, visit func(pprofile.ResourceProfiles) error) error {
	all := pprofile.NewResourceProfilesSlice()
	pd.ResourceProfiles().MoveAndAppendTo(all)
	for _, rp := range all.All() {
		pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
		only := pd.ResourceProfiles().AppendEmpty()
		rp.MoveTo(only)
		if err := visit(only); err != nil {
			return err
		}
	}
	return nil
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

// periodType writes the period type of a pprof as type/unit.
func periodType(p *profile.Profile) string {
	if t := p.PeriodType; t != nil && t.Type+t.Unit != "" {
		return t.Type + "/" + t.Unit
	}
	return "none"
}

// FrameNames returns the names of the functions of a location, the innermost first. Without a function, it is the file of the
// mapping and the address. All indices of dict are valid.
func FrameNames(dict pprofile.ProfilesDictionary, location int32) (names []string) {
	text := func(i int32) string { return dictionary.ValidString(dict.StringTable(), i) }
	l := dict.LocationTable().At(int(location))
	for _, line := range l.Lines().All() {
		function := dict.FunctionTable().At(int(line.FunctionIndex()))
		names = append(names, cmp.Or(text(function.NameStrindex()), text(function.SystemNameStrindex()), text(function.FilenameStrindex()), "?"))
	}
	if len(names) > 0 {
		return names
	}
	file := ""
	if i := int(l.MappingIndex()); i > 0 && i < dict.MappingTable().Len() {
		file = text(dict.MappingTable().At(i).FilenameStrindex())
	}
	return []string{sampletypes.AddressName(file, l.Address())}
}
