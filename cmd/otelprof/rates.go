// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// rated is a row of ls, and its JSON, whose fields mean what those of /api/services mean.
type rated struct {
	query.Row

	// Rate is the sum per second of all processes, averaged over the time that has data, and PerProcess that of one. Snapshots, and profiles
	// without a duration, have none.
	Rate       *float64 `json:"rate,omitempty"`
	PerProcess *float64 `json:"rate_per_process,omitempty"`
	// Processes is how many processes there were, and of snapshots how many live: Sum is theirs.
	Processes int `json:"processes"`
	// Covered is the profiled time of all processes.
	Covered *float64 `json:"covered_seconds,omitempty"`
	// Age is how long before the end of the range, or before now, the latest snapshot was.
	Age *float64 `json:"age_seconds,omitempty"`

	words webui.Words
}

// ratedOf computes what people read of a total.
func (a *app) ratedOf(t *query.Total, sel *query.Selection) *rated {
	r := &rated{Row: t.Row}
	if t.Series != nil {
		a.rate(r, t.Series, sel)
	}
	return r
}

// rate sets what is computed from a series.
func (a *app) rate(r *rated, of *query.Series, sel *query.Selection) {
	r.words = webui.Words{SampleType: r.SampleType, Unit: r.Unit, Reading: of.Read(of.Bounds(sel)), From: sel.From, To: sel.To, Now: a.now}
	w := &r.words
	r.Processes = w.Summary.Processes
	switch {
	case !w.HasValue(): // without a time, no snapshot is known to be the last one
	case w.Snapshots:
		end := a.now
		if !sel.To.IsZero() {
			end = sel.To
		}
		age := w.Reading.Age(end).Seconds()
		r.Sum, r.Saturated, r.Processes, r.Age = w.Sum, sampletypes.Saturated(w.Sum), w.Living, &age
	default:
		r.Rate, r.PerProcess, r.Covered = &w.Rate, &w.PerProcess, &w.Covered
	}
}

// headline has the first line of top, and the second and third one of a base.
func (a *app) headline(compared *query.Comparison) string {
	of := compared.Shown()
	if compared.Base == nil {
		return a.line("Rate", of, &of.New, compared.New)
	}
	text := a.line("Rate", of, &of.New, compared.New) + a.line("Base", of, &of.Base, compared.Base)
	if change, ok := of.Change(); ok {
		each := ""
		if compared.PerProcess {
			each = " for each process"
		}
		text += "Change: " + signed("%+.3g %%", 100*change) + each + "\n"
	}
	return text
}

// line says what people read of a sample type. It is "" if the profiles have no rate, and no time.
func (a *app) line(name string, of *query.ComparedType, m *query.Measure, side *query.Side) string {
	w := webui.Words{SampleType: of.Type, Unit: of.Unit, Reading: m.Reading, From: side.From, To: side.To, Now: a.now}
	switch {
	case !w.HasValue():
		return ""
	case w.Snapshots:
		if name == "Rate" {
			name = "Living"
		}
		return fmt.Sprintf("%s: %s %s (%s)\n", name, cell(w.Value()), w.Processes(), w.Age())
	default:
		return fmt.Sprintf("%s: %s, of %s (profiled %s)\n", name, cell(w.Value()), cell(w.Processes()), w.Coverage())
	}
}

// written is the rate of the series, or the sum of its living snapshots.
func (r *rated) written() string {
	if r.Snapshot {
		return sumOf(&r.Row)
	}
	return cell(r.words.Value())
}

// of says how many processes that is of.
func (r *rated) of() string { return cell(r.words.Processes()) }

// coverage says how much of the time of the processes was profiled, or how old the snapshots are.
func (r *rated) coverage() string { return cell(cmp.Or(r.words.Age(), r.words.Coverage())) }
