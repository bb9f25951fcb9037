// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/cmd/otelprof/internal/regression"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
)

// runs are the profiles of one side of a comparison.
type runs struct {
	sampleType *profile.ValueType // that of the comparison; nil before the first profile
	side       regression.Side
	limit      int64 // of the memory of the functions, in bytes

	snapshots map[string]snapshot // the last one of each process
	held      int64               // memory of their runs, in bytes
	earlier   int                 // number of snapshots that are not the last one
}

type snapshot struct {
	time int64
	run  *regression.Run
}

// readRuns reads a side. sampleType is that of the other side, or nil.
func (a *app) readRuns(ctx context.Context, source *query.Source, sel *query.Selection, sampleType *profile.ValueType) (*runs, error) {
	r := &runs{sampleType: sampleType, limit: a.limit / 8, snapshots: map[string]snapshot{}}
	if err := source.EachPprof(ctx, sel, r.add); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(r.snapshots)) {
		if run := r.snapshots[key].run; run.Total > 0 {
			r.side.Add(run)
		}
	}
	if r.side.Runs == 0 {
		return nil, fmt.Errorf("all values of %s are 0", r.sampleType.Type)
	}
	return r, nil
}

// add adds a profile. If it is a snapshot, key names its process.
func (r *runs) add(p *profile.Profile, key string) error {
	if r.sampleType == nil {
		i, err := p.SampleIndexByName("")
		if err != nil {
			return err
		}
		r.sampleType = p.SampleType[i]
	}
	value := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return *t == *r.sampleType })
	if value < 0 {
		return fmt.Errorf("sample types are %s: must include %s/%s, as in the profiles before; select a sample type with --type", typesOf(p), r.sampleType.Type, r.sampleType.Unit)
	}
	run, err := runOf(p, value)
	if err != nil {
		return err
	}
	switch last, found := r.snapshots[key]; {
	case key == "":
		if run.Total > 0 {
			r.side.Add(run)
		}
	case !found:
		r.snapshots[key] = snapshot{p.TimeNanos, run}
		r.held += run.Size()
	default:
		r.earlier++
		if p.TimeNanos >= last.time {
			r.snapshots[key] = snapshot{p.TimeNanos, run}
			r.held += run.Size() - last.run.Size()
		}
	}
	if r.held+r.side.Size() > r.limit {
		return fmt.Errorf("the functions take more than %d MiB of memory, an eighth of --max-memory: select less, by service, type or time", r.limit>>20)
	}
	return nil
}

// runOf sums the values of one sample type by function.
func runOf(p *profile.Profile, column int) (*regression.Run, error) {
	functions := query.SumFunctions(p, column)
	run := &regression.Run{Samples: max(1, query.SamplesOf(p, column)), Functions: make(map[string]regression.Value, len(functions))}
	for _, s := range p.Sample {
		if s.Value[column] < 0 {
			return nil, negativeError(s.Value[column])
		}
		run.Total += float64(s.Value[column])
	}
	for name, f := range functions {
		run.Functions[strings.Clone(name)] = regression.Value{Cumulative: f.Total, Flat: f.Self} // p goes
	}
	return run, nil
}
