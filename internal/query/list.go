// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
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
}

// List returns the totals of what is selected by service, profile type and sample type, in this
// order.
func (s *Source) List(ctx context.Context, sel *Selection) ([]Row, error) {
	series := map[string]*archive.Summary{}
	times := map[string][2]uint64{} // of all snapshots of a series
	err := s.Each(ctx, sel, func(_ *archive.Record, pd pprofile.Profiles) error {
		for _, summary := range archive.Summarize(pd) {
			held := series[summary.Series]
			if held == nil {
				series[summary.Series], times[summary.Series] = &summary, [2]uint64{summary.Start, summary.End}
				continue
			}
			span := times[summary.Series]
			times[summary.Series] = [2]uint64{min(span[0], summary.Start), max(span[1], summary.End)}
			held.Add(&summary)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rowsOf(series, times), nil
}

func rowsOf(series map[string]*archive.Summary, times map[string][2]uint64) []Row {
	type key struct {
		service, typ, sampleType, unit string
		snapshot                       bool
	}
	rows := map[key]*Row{}
	for name, s := range series {
		k := key{s.Service, s.Type, s.SampleType, s.Unit, s.Snapshot}
		row := rows[k]
		if row == nil {
			row = &Row{Service: s.Service, Type: s.Type, SampleType: s.SampleType, Unit: s.Unit, Snapshot: s.Snapshot, Start: times[name][0]}
			rows[k] = row
		}
		row.Start, row.End = min(row.Start, times[name][0]), max(row.End, times[name][1])
		row.Profiles += s.Profiles
		row.Samples += s.Samples
		row.Sum = archive.AddSaturating(row.Sum, s.Sum)
	}
	sorted := make([]Row, 0, len(rows))
	for _, row := range rows {
		sorted = append(sorted, *row)
	}
	slices.SortFunc(sorted, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Type, b.Type), cmp.Compare(a.SampleType, b.SampleType),
			cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Start, b.Start))
	})
	return sorted
}
