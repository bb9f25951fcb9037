// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/cmd/otelprof/internal/regression"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
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

// runOf sums the values of one sample type by function, as pprof's top does: by name, and each once in a stack.
func runOf(p *profile.Profile, value int) (*regression.Run, error) {
	type function struct {
		regression.Value
		last int // sample that it was seen in, from 1
	}
	functions, total := map[string]*function{}, 0.0
	for i, s := range p.Sample {
		v := float64(s.Value[value])
		if v < 0 {
			return nil, negativeError(s.Value[value])
		}
		total += v
		leaf := true
		for _, l := range s.Location {
			for _, name := range namesOf(l) {
				f := functions[name]
				if f == nil {
					f = &function{}
					functions[name] = f
				}
				if leaf {
					f.Flat += v
					leaf = false
				}
				if f.last != i+1 {
					f.last = i + 1
					f.Cumulative += v
				}
			}
		}
	}
	run := &regression.Run{Total: total, Samples: max(1, samplesOf(p, value)), Functions: make(map[string]regression.Value, len(functions))}
	for name, f := range functions {
		run.Functions[strings.Clone(name)] = f.Value // p goes
	}
	return run, nil
}

// namesOf returns the functions of a location, the innermost first. Without any, it is the file of its mapping.
func namesOf(l *profile.Location) []string {
	names := make([]string, 0, 1)
	for _, line := range l.Line {
		if line.Function != nil {
			names = append(names, cmp.Or(sampletypes.FunctionName(line.Function.Name, line.Function.SystemName), "<unknown>"))
		}
	}
	if len(names) > 0 {
		return names
	}
	if l.Mapping != nil && l.Mapping.File != "" {
		return append(names, "["+path.Base(l.Mapping.File)+"]")
	}
	return append(names, "<unknown>")
}

// samplesOf returns the number of samples that the values of a sample type stand for. A profiler takes one in each period:
// of CPU time, or of bytes, by which it also selects objects.
func samplesOf(p *profile.Profile, value int) float64 {
	compared := p.SampleType[value]
	total := func(i int) (sum float64) {
		for _, s := range p.Sample {
			sum += float64(s.Value[i])
		}
		return sum
	}
	if compared.Unit == "count" && compared.Type == "samples" {
		return total(value)
	}
	if i := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == "samples" && t.Unit == "count" }); i >= 0 {
		return total(i)
	}
	if period := p.PeriodType; period != nil && p.Period > 0 {
		family, _, _ := strings.Cut(compared.Type, "_") // alloc of alloc_objects
		i := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool {
			return t.Unit == period.Unit && (t.Type == period.Type || t.Type == family+"_"+period.Type)
		})
		if i >= 0 {
			return total(i) / float64(p.Period)
		}
	}
	if compared.Unit == "count" {
		return total(value)
	}
	return float64(len(p.Sample))
}
