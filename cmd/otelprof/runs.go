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
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// runs are the profiles of one side of a comparison.
type runs struct {
	sampleType *profile.ValueType // that of the comparison; nil before the first profile
	// side has the runs with their seconds, and plain each as one second: that is compared if one has no duration, or is a snapshot.
	side, plain regression.Side
	isRate      bool        // all runs have a duration
	words       webui.Words // of the series
	limit       int64       // of the memory of the functions, in bytes

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
	r := &runs{sampleType: sampleType, isRate: true, limit: a.limit / 8, snapshots: map[string]snapshot{}}
	times := query.NewSeriesCollector(sel, a.limit/8)
	if err := source.EachRun(ctx, sel, times, r.add); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(r.snapshots)) {
		r.plain.Add(r.snapshots[key].run)
	}
	if r.plain.Total == 0 {
		return nil, fmt.Errorf("all values of %s are 0", r.sampleType.Type)
	}
	r.words = webui.Words{SampleType: r.sampleType.Type, Unit: r.sampleType.Unit, From: sel.From, To: sel.To, Now: a.now}
	for _, of := range times.Series() {
		if of.SampleType == r.sampleType.Type && of.Unit == r.sampleType.Unit {
			r.words.Reading = of.Read(of.Bounds(sel))
			break
		}
	}
	return r, nil
}

// add adds a run.
func (r *runs) add(of *query.Run) error {
	p := of.Profile
	if r.sampleType == nil {
		i, err := p.SampleIndexByName("")
		if err != nil {
			return err
		}
		r.sampleType = p.SampleType[i]
	}
	value := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return *t == *r.sampleType })
	if value < 0 {
		return fmt.Errorf("sample types are %s: must include %s/%s, as in the profiles before; select a sample type with --type", query.SampleTypes(p), r.sampleType.Type, r.sampleType.Unit)
	}
	run, err := runOf(p, value)
	if err != nil {
		return err
	}
	switch last, found := r.snapshots[of.Process]; {
	case of.Process == "":
		r.plain.Add(run)
		seconds := of.Seconds(r.sampleType)
		if r.isRate = r.isRate && seconds > 0; r.isRate {
			run.Seconds = seconds
			r.side.Add(run)
		}
	case !found:
		r.isRate = false
		r.snapshots[of.Process] = snapshot{p.TimeNanos, run}
		r.held += run.Size()
	default:
		r.earlier++
		if p.TimeNanos >= last.time {
			r.snapshots[of.Process] = snapshot{p.TimeNanos, run}
			r.held += run.Size() - last.run.Size()
		}
	}
	if r.held+r.side.Size()+r.plain.Size() > r.limit {
		return fmt.Errorf("the functions take more than %d MiB of memory, an eighth of --max-memory: select less, by service, type or time", r.limit>>20)
	}
	return nil
}

// runOf sums the values of one sample type by function.
func runOf(p *profile.Profile, column int) (*regression.Run, error) {
	functions := query.SumFunctions(p, column)
	run := &regression.Run{Seconds: 1, Samples: max(1, query.SamplesOf(p, column)), Functions: make(map[string]regression.Value, len(functions))}
	for _, s := range p.Sample {
		if s.Value[column] < 0 {
			return nil, query.NegativeError(s.Value[column])
		}
		run.Total += float64(s.Value[column])
	}
	for name, f := range functions {
		run.Functions[strings.Clone(name)] = regression.Value{Cumulative: f.Total, Flat: f.Self} // p goes
	}
	return run, nil
}
