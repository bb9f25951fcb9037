// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"encoding/json"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Run is a record as one pprof, or the snapshots that it has of a process.
type Run struct {
	*profile.Profile

	// Process names that of snapshots: a resource or, in files other than OTLP, the file. It is "" of intervals.
	Process string

	covered map[profile.ValueType]float64
}

// Seconds returns the profiled time of all processes of a sample type. It is 0 of snapshots, and of profiles without a duration.
func (r *Run) Seconds(t *profile.ValueType) float64 {
	return r.covered[profile.ValueType{Type: t.Type, Unit: t.Unit}]
}

// EachRun calls visit with the runs of each record, and adds the times of the processes to a collector. The error is a *TypesError if the
// records have several profile types, or profiles with different period types; it is ErrEmpty without any.
func (s *Source) EachRun(ctx context.Context, sel *Selection, times *SeriesCollector, visit func(*Run) error) error {
	kinds := newKinds()
	err := s.eachTimed(ctx, sel, times, func(record *archive.Record, pd pprofile.Profiles) error {
		if kinds.add(pd); kinds.differ() { // an error, when all kinds are known
			return nil
		}
		covered, err := coveredBy(pd)
		if err != nil {
			return record.Fail(err)
		}
		result := &Result{Profiles: pd, maxMemory: s.Options.MaxMemory}
		var visited error
		call := func(p *profile.Profile, process string) error {
			visited = visit(&Run{p, process, covered})
			return visited
		}
		if snapshots, _ := result.Snapshots(); !snapshots {
			var p *profile.Profile
			if p, err = result.Pprof(ctx); err == nil {
				err = call(p, "")
			}
		} else {
			covered = nil
			err = result.eachResource(ctx, func(resource int, p *profile.Profile) error {
				process, err := json.Marshal(pd.ResourceProfiles().At(resource).Resource().Attributes().AsRaw()) // in the order of the keys
				if isOTLP := record.Encoding == archive.OTLPProto || record.Encoding == archive.OTLPJSON; err != nil || !isOTLP {
					process = []byte(record.File) // which is of one process
				}
				return call(p, string(process))
			})
		}
		if err != nil && visited == nil && ctx.Err() == nil {
			err = record.Fail(err)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(kinds.all) == 0:
		return ErrEmpty
	}
	return kinds.err()
}

// coveredBy returns the profiled time of the processes of a payload in seconds, by sample type.
func coveredBy(pd pprofile.Profiles) (map[profile.ValueType]float64, error) {
	summaries, err := contents.Summarize(pd)
	covered := map[profile.ValueType]float64{}
	for i := range summaries {
		of := &summaries[i]
		for _, row := range of.Rows {
			covered[profile.ValueType{Type: of.SampleType, Unit: of.Unit}] += float64(row.Covered) / 1e9
		}
	}
	return covered, err
}
