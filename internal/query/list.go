// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// Kind identifies Profiles that are summed.
type Kind struct {
	Service    string `json:"service"`
	Type       string `json:"type"`
	SampleType string `json:"sample_type"`
	Unit       string `json:"unit"`
	PeriodType string `json:"period_type"`
	PeriodUnit string `json:"period_unit"`
	// Snapshot: of each resource, only the last snapshot counts.
	Snapshot bool `json:"snapshot"`
}

// KindOf returns the kind of a series.
func KindOf(k *contents.Key) Kind {
	return Kind{k.Service, k.Type, k.SampleType, k.Unit, k.PeriodType, k.PeriodUnit, k.Snapshot != 0}
}

// Key returns the key of the kind, without its Snapshot.
func (k Kind) Key() contents.Key {
	return contents.Key{
		Service: k.Service, Type: k.Type, SampleType: k.SampleType, Unit: k.Unit, PeriodType: k.PeriodType, PeriodUnit: k.PeriodUnit,
	}
}

// Compare orders kinds by service, type, sample type and period type. Snapshots are after intervals.
func (k Kind) Compare(other Kind) int {
	return cmp.Or(cmp.Compare(k.Service, other.Service), cmp.Compare(k.Type, other.Type),
		cmp.Compare(k.SampleType, other.SampleType), cmp.Compare(k.Unit, other.Unit),
		cmp.Compare(k.PeriodType, other.PeriodType), cmp.Compare(k.PeriodUnit, other.PeriodUnit),
		strings.Compare(strconv.FormatBool(k.Snapshot), strconv.FormatBool(other.Snapshot))) // "false", "true"
}

// Row is a total of List.
type Row struct {
	Kind

	// Start and End are in nanoseconds since the epoch, 0 if the profiles state no time.
	Start    uint64 `json:"start_unix_nano"`
	End      uint64 `json:"end_unix_nano"`
	Profiles int    `json:"profiles"`
	Samples  int    `json:"samples"`
	Sum      int64  `json:"sum"`
	// Saturated: Sum is the largest or least int64, and the sum may be above or below that.
	Saturated bool `json:"saturated,omitempty"`
}

// List returns the totals of the selected Profiles by service, profile type, sample type and period type, in this
// order. It takes them from the index of a file if that answers the same as the file.
func (s *Source) List(ctx context.Context, sel *Selection) (rows []Row, err error) {
	err = Repeat(func() error {
		rows, err = s.list(ctx, sel)
		return err
	})
	return rows, err
}

func (s *Source) list(ctx context.Context, sel *Selection) (rows []Row, err error) {
	all := NewTally(sel, s.Options.MaxMemory/windowShare)
	add := func(summaries []contents.Summary) error { return all.addSelected(ctx, sel, summaries) }
	if err := s.read(ctx, sel, &reading{entry: add, filter: sel.withoutKeys(), record: summarizing(add)}); err != nil {
		return nil, err
	}
	for _, total := range all.Totals() {
		rows = append(rows, total.Row)
	}
	return rows, nil
}

// Labels returns the attributes of the selected profiles. It takes them from the index of a file if that answers the same as
// the file. They take at most a quarter of the memory limit.
func (s *Source) Labels(ctx context.Context, sel *Selection) (found *labels.Set, err error) {
	err = Repeat(func() error {
		found, err = s.labels(ctx, sel)
		return err
	})
	return found, err
}

func (s *Source) labels(ctx context.Context, sel *Selection) (*labels.Set, error) {
	found := labels.NewSet(s.Options.MaxMemory / windowShare)
	err := s.read(ctx, sel, &reading{labels: found.Merge, record: func(record *archive.Record, pd pprofile.Profiles) error {
		pd, err := Resolve(record, pd)
		if err == nil {
			found.AddProfiles(pd)
		}
		return err
	}})
	if err != nil {
		return nil, err
	}
	if _, complete := found.Names(); !complete {
		return nil, fmt.Errorf("the labels take more than %d MiB of memory, a quarter of the memory limit; %s", s.Options.MaxMemory/windowShare>>20, narrow)
	}
	return found, nil
}
