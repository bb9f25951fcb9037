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
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// Source is the files that queries read.
type Source struct {
	Files   []archive.File
	Options archive.Options
	// Failed gets each *archive.Error, one at a time. Reading continues after it if it returns nil.
	Failed func(error) error
	// Change, unless it is nil, may change the selected part of each payload, such as by symbolizing it.
	Change func(pprofile.Profiles)
}

// Each calls visit with the selected part of each payload, in the order of the files. visit may
// change it. Records are not read if the index of their file says that nothing of them is selected. If visit returns
// an *archive.Error, that goes to Failed; any other error ends Each.
func (s *Source) Each(ctx context.Context, sel *Selection, visit func(*archive.Record, pprofile.Profiles) error) error {
	for files := range slices.Chunk(s.Files, archive.FilesAhead) {
		if !sel.selectsAll() {
			s.Options.FetchIndexes(ctx, files)
		}
		parts := make([][]archive.Part, len(files))
		for i, file := range files {
			parts[i] = s.selectedParts(ctx, file, sel)
		}
		if ctx.Err() != nil { // the parts may be too few
			return ctx.Err()
		}
		s.Options.Fetch(ctx, files, parts)
		for i, file := range files {
			if err := s.eachOf(ctx, file, parts[i], sel, visit); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// eachOf is Each for parts of a file.
func (s *Source) eachOf(ctx context.Context, file archive.File, parts []archive.Part, sel *Selection, visit func(*archive.Record, pprofile.Profiles) error) error {
	for _, part := range parts {
		for record, err := range s.Options.Records(ctx, file, part) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				err = s.report(err)
			} else {
				err = s.visitParts(ctx, record, sel, visit)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// report returns an error that ends reading: that of a file or record goes to Failed.
func (s *Source) report(err error) error {
	if _, isRecord := errors.AsType[*archive.Error](err); isRecord {
		return s.Failed(err)
	}
	return err
}

// visitParts visits a record, in parts if it is too large.
func (s *Source) visitParts(ctx context.Context, record *archive.Record, sel *Selection, visit func(*archive.Record, pprofile.Profiles) error) error {
	for part, err := range record.Parts(sel.MatchesService) {
		if err == nil {
			err = s.visit(ctx, part, sel, visit)
		}
		if err := s.report(err); err != nil {
			return err
		}
	}
	return nil
}

func (s *Source) visit(ctx context.Context, record *archive.Record, sel *Selection, visit func(*archive.Record, pprofile.Profiles) error) error {
	// Recordings have ids as integers, and JSON may have upper-case digits.
	if record.Encoding != archive.JFR && record.Encoding != archive.OTLPJSON && sel.excludes(record.Data) {
		return nil
	}
	pd, err := record.Profiles()
	if err != nil {
		return err
	}
	if sel.SelectsSamples() { // attributes must show their values
		if pd, err = Resolve(record, pd); err != nil {
			return err
		}
	}
	if err := sel.filter(ctx, pd); err != nil {
		return err
	}
	if pd.ProfileCount() == 0 {
		return nil
	}
	if s.Change != nil {
		s.Change(pd)
	}
	return visit(record, pd)
}

// Resolve checks the payload of a record, and returns it without string references. The error is an *archive.Error.
func Resolve(record *archive.Record, pd pprofile.Profiles) (pprofile.Profiles, error) {
	err := dictionary.Check(pd)
	if err == nil {
		pd, err = dictionary.ResolveStrings(pd)
	}
	if err != nil {
		err = record.Fail(err)
	}
	return pd, err
}

// ErrEmpty says that nothing is selected.
var ErrEmpty = errors.New("no profiles match the selection")

// windowShare is the part of MaxMemory that the sum may take; reading and the result take the rest.
const windowShare = 4

// Merge returns the sum of the selected Profiles, with a ResourceProfiles for each resource or, if total is
// set, for each service: intervals of its resources are summed. The error is ErrEmpty if nothing is
// selected. A sum beyond int64 is an error, too. Scopes of snapshots lose their version.
func (s *Source) Merge(ctx context.Context, sel *Selection, total bool) (*Result, error) {
	options := &merge.Options{Snapshots: merge.SnapshotsLatest, SnapshotSampleTypes: sampletypes.SnapshotSampleTypes}
	window, limit := merge.NewWindow(options), s.Options.MaxMemory/windowShare
	payloads := make(chan *merge.Payload) // one is decoded while the one before it is merged
	group, ctx := errgroup.WithContext(ctx)
	group.Go(panics.Guarded(func() error {
		defer close(payloads)
		return s.Each(ctx, sel, func(record *archive.Record, pd pprofile.Profiles) error {
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
		})
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
