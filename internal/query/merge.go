// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// ErrEmpty says that nothing is selected.
var ErrEmpty = errors.New("no profiles match the selection")

// windowShare is the part of MaxMemory that the sum may take; reading and the result take the rest.
const windowShare = 4

// Merge returns the sum of the selected Profiles, with a ResourceProfiles for each resource or, if total is
// set, for each service: intervals of its resources are summed, and timestamps dropped. The error is ErrEmpty if nothing is
// selected. A sum beyond int64 is an error, too. Scopes of snapshots lose their version.
func (s *Source) Merge(ctx context.Context, sel *Selection, total bool) (result *Result, err error) {
	err = Repeat(func() error {
		result, err = s.merge(ctx, sel, total, nil)
		return err
	})
	return result, err
}

// MergeTimed is Merge of a total, with the Series of what it reads. Snapshots of processes that have ended are left out.
func (s *Source) MergeTimed(ctx context.Context, sel *Selection) (result *Result, err error) {
	err = Repeat(func() error {
		times := NewSeriesCollector(sel, s.Options.MaxMemory/windowShare)
		if result, err = s.merge(ctx, sel, true, times); err == nil {
			result.Series = times.Series()
			result.removeEnded(sel)
		}
		return err
	})
	return result, err
}

// merge also collects the times of processes, unless times is nil.
func (s *Source) merge(ctx context.Context, sel *Selection, total bool, times *SeriesCollector) (*Result, error) {
	options := &merge.Options{
		Snapshots: merge.SnapshotsLatest, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes,
		DropTimestamps: total, // which would make a sample of each in a pprof
	}
	window, limit := merge.NewWindow(options), s.Options.MaxMemory/windowShare
	payloads := make(chan *merge.Payload) // one is decoded while the one before it is merged
	group, ctx := errgroup.WithContext(ctx)
	group.Go(panics.Guarded(func() error {
		defer close(payloads)
		add := func(record *archive.Record, pd pprofile.Profiles) error {
			normalize(pd, total)
			payload, err := merge.Check(pd, options)
			if err != nil {
				return record.Fail(err)
			}
			select {
			case payloads <- payload:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if times == nil {
			return s.Each(ctx, sel, add)
		}
		return s.eachTimed(ctx, sel, times, add)
	}))
	group.Go(panics.Guarded(func() error {
		for payload := range payloads {
			if err := window.Add(payload); err != nil {
				return fmt.Errorf("the selection does not fit into one profile: %w; %s", err, narrow)
			}
			if int64(window.Size()) > limit {
				return fmt.Errorf("the selection takes more than %d MiB of memory, a quarter of the memory limit; %s", limit>>20, narrow)
			}
		}
		return nil
	}))
	if err := group.Wait(); err != nil {
		panics.Rethrow(err)
		return nil, err
	}
	if window.Counts().Profiles == 0 {
		return nil, ErrEmpty
	}
	if window.Counts().Saturated > 0 {
		return nil, fmt.Errorf("a sum does not fit into 64 bits; %s", narrow)
	}
	return &Result{Profiles: window.Emit(""), Superseded: window.Counts().Superseded, maxMemory: s.Options.MaxMemory}, nil
}

// removeEnded removes the snapshots of processes that do not live at the end of the range. A newer snapshot without selected samples takes the
// place of one that has some.
func (r *Result) removeEnded(sel *Selection) {
	living := map[Kind]map[uint64]uint64{}
	for _, of := range r.Series {
		if of.Snapshots {
			living[of.Kind] = of.LivingProcesses(of.Bounds(sel))
		}
	}
	dict := r.Profiles.Dictionary()
	text := func(i int32) string { return dictionary.ValidString(dict.StringTable(), i) }
	r.Profiles.ResourceProfiles().RemoveIf(func(rp pprofile.ResourceProfiles) bool {
		resource := processes.HashResource(rp.Resource().Attributes())
		rp.ScopeProfiles().RemoveIf(func(sp pprofile.ScopeProfiles) bool {
			types := sampletypes.Of(sp, text)
			key := contents.Key{Type: dictionary.ValidUTF8(sampletypes.ProfileType(sp.Scope().Attributes(), types)), Snapshot: 1}
			i := -1
			sp.Profiles().RemoveIf(func(p pprofile.Profile) bool {
				i++
				if !sampletypes.IsSnapshot(dict, p, sampletypes.SnapshotSampleTypes) {
					return false
				}
				key.SampleType, key.Unit = types[i].Type, types[i].Unit
				key.PeriodType, key.PeriodUnit = text(p.PeriodType().TypeStrindex()), text(p.PeriodType().UnitStrindex())
				times := living[KindOf(&key)]
				if len(times) == 0 { // the kind states no time
					return false
				}
				rows, _ := processes.Of(dict, resource, p, 0) // of a malformed table, the resource is the process
				ended, superseded := true, true
				for _, row := range rows {
					newest, lives := times[row.Hash]
					ended, superseded = ended && !lives, superseded && row.Start < newest
				}
				switch {
				case ended:
					r.Ended++
				case superseded:
					r.Superseded++
					p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
				}
				return ended
			})
			return sp.Profiles().Len() == 0
		})
		return rp.ScopeProfiles().Len() == 0
	})
}

const narrow = "select less, by service, type or time"

// keptAttributes are those of a resource in a total: of a service, and of the main binary, whose mapping is
// the first in a pprof.
var keptAttributes = []string{"service.name", "process.executable.name"}

// normalize removes the versions of scopes with snapshots: after an upgrade of the Collector, the next snapshot still
// replaces the one before. For a total it removes the other attributes of resources without snapshots.
func normalize(pd pprofile.Profiles, total bool) {
	for _, rp := range pd.ResourceProfiles().All() {
		snapshots := false
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				if sampletypes.IsSnapshot(pd.Dictionary(), p, sampletypes.SnapshotSampleTypes) {
					sp.Scope().SetVersion("")
					snapshots = true
					break
				}
			}
		}
		if total && !snapshots {
			rp.Resource().Attributes().RemoveIf(func(key string, _ pcommon.Value) bool { return !slices.Contains(keptAttributes, key) })
			rp.Resource().SetDroppedAttributesCount(0)
			rp.SetSchemaUrl("")
		}
	}
}
