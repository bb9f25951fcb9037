// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// Row is a total of List.
type Row struct {
	Service    string `json:"service"`
	Type       string `json:"type"`
	SampleType string `json:"sample_type"`
	Unit       string `json:"unit"`
	// Snapshot: Samples and Sum are those of the last snapshot of each resource.
	Snapshot bool `json:"snapshot"`
	// Start and End are in nanoseconds since the epoch, 0 if the profiles state no time.
	Start    uint64 `json:"start_unix_nano"`
	End      uint64 `json:"end_unix_nano"`
	Profiles int    `json:"profiles"`
	Samples  int    `json:"samples"`
	Sum      int64  `json:"sum"`
	// Saturated: Sum is the largest or least int64, and the sum is above or below that.
	Saturated bool `json:"saturated,omitempty"`
}

// List returns the totals of the selected Profiles by service, profile type and sample type, in this
// order. It takes them from the index of a file if that answers the same as the file.
func (s *Source) List(ctx context.Context, sel *Selection) ([]Row, error) {
	all := &totals{summaries: map[recordfile.Key]*recordfile.Summary{}, limit: s.Options.MaxMemory / windowShare}
	// Summaries are selected by service and type, so that those of an index and of a file are equal.
	rest := *sel
	rest.Services, rest.Types = nil, nil
	for _, file := range s.Files {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ok, err := s.addIndex(all, file, sel)
		if err == nil && !ok {
			err = s.eachIn(ctx, file, &rest, func(record *archive.Record, pd pprofile.Profiles) error {
				summaries, err := recordfile.Summarize(pd)
				if err != nil {
					return record.Fail(err)
				}
				return all.add(summaries, sel)
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return rowsOf(all.summaries), nil
}

// totals adds up summaries.
type totals struct {
	summaries   map[recordfile.Key]*recordfile.Summary
	size, limit int64 // in bytes
}

// add adds those summaries whose service and type is selected.
func (t *totals) add(summaries []recordfile.Summary, sel *Selection) error {
	for i := range summaries {
		s := &summaries[i]
		if !sel.matchesSummary(s) {
			continue
		}
		if known := t.summaries[s.Key]; known != nil {
			known.Add(s)
			continue
		}
		const summarySize = 400 // with its place in the map, which grows
		if t.size += summarySize + int64(len(s.Service)+len(s.Type)+len(s.SampleType)+len(s.Unit)); t.size > t.limit {
			return fmt.Errorf("the list takes more than %d MiB of memory, a quarter of the memory limit; %s", t.limit>>20, narrow)
		}
		own := *s
		t.summaries[s.Key] = &own
	}
	return nil
}

func rowsOf(totals map[recordfile.Key]*recordfile.Summary) []Row {
	rows := map[recordfile.Key]*recordfile.Summary{}
	for _, s := range totals {
		k := s.Key
		k.Snapshot, s.Snapshot = min(k.Snapshot, 1), 0 // the snapshots of several resources are added
		if row := rows[k]; row != nil {
			row.Add(s)
		} else {
			rows[k] = s
		}
	}
	sorted := make([]Row, 0, len(rows))
	for k, row := range rows {
		sum, saturated := row.Sum.Int64()
		sorted = append(sorted, Row{
			Service: row.Service, Type: row.Type, SampleType: row.SampleType, Unit: row.Unit, Snapshot: k.Snapshot != 0,
			Start: row.Start, End: row.End, Profiles: row.Profiles, Samples: row.Samples, Sum: sum, Saturated: saturated,
		})
	}
	slices.SortFunc(sorted, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Type, b.Type), cmp.Compare(a.SampleType, b.SampleType),
			cmp.Compare(a.Unit, b.Unit), SnapshotsLast(a.Snapshot, b.Snapshot))
	})
	return sorted
}

// SnapshotsLast compares two totals that are equal but for whether they are of snapshots.
func SnapshotsLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
