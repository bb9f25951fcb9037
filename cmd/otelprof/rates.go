// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
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

	summary rate.Summary
	ended   bool // the range ended in the past
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
	from, to := of.Bounds(sel)
	r.summary = of.Summary(from, to)
	r.Processes = r.summary.Processes
	end := a.now
	if !sel.To.IsZero() {
		end, r.ended = sel.To, a.now.Sub(sel.To) >= time.Minute
	}
	if r.Snapshot {
		if sum, living, at := of.Living(from, to); at > 0 { // without a time, none is known to be the last one
			age := end.Sub(query.TimeOf(at)).Seconds()
			r.Sum, r.Saturated, r.Processes, r.Age = sum, sampletypes.Saturated(sum), living, &age
		}
	} else if r.summary.Data > 0 {
		r.Rate, r.PerProcess, r.Covered = &r.summary.Rate, &r.summary.PerProcess, &r.summary.Covered
	}
}

// headline is the first line of top, and the second one of a base. The duration of a pprof becomes the covered time of all processes.
func (a *app) headline(compared *query.Comparison, sel, base *query.Selection) string {
	of := compared.Result.Shown(compared.Pprof)
	if of == nil {
		return ""
	}
	text, r := a.line("Rate", of, sel)
	if r.Covered != nil {
		compared.Pprof.DurationNanos = int64(*r.Covered * 1e9)
	}
	if compared.Base == nil {
		return text
	}
	ofBase := compared.Base.Shown(compared.Pprof)
	if text == "" || ofBase == nil {
		return text
	}
	line, was := a.line("Base", ofBase, base)
	text += line
	if r.Rate != nil && was.Rate != nil {
		if change, ok := rate.Change(*was.Rate, *r.Rate); ok {
			text += fmt.Sprintf("Change: %+.3g %%\n", 100*change)
		}
	}
	return text
}

// line writes a series, with its row. It is "" if the profiles have no rate, and no time.
func (a *app) line(name string, of *query.Series, sel *query.Selection) (string, *rated) {
	r := &rated{Row: query.Row{Kind: of.Kind}}
	a.rate(r, of, sel)
	switch {
	case r.Age != nil:
		if name == "Rate" {
			name = "Living"
		}
		return fmt.Sprintf("%s: %s %s (%s)\n", name, r.written(), r.of(), r.coverage()), r
	case r.Rate != nil:
		return fmt.Sprintf("%s: %s, of %s (profiled %s)\n", name, r.written(), r.of(), r.coverage()), r
	default:
		return "", r
	}
}

// written is the rate of the series, or the sum of its living snapshots.
func (r *rated) written() string {
	switch {
	case r.Snapshot:
		return sumOf(&r.Row)
	case r.Rate == nil:
		return "-"
	default:
		return r.perSecond(*r.Rate)
	}
}

func (r *rated) perSecond(v float64) string { return cell(webui.Rate(r.SampleType, r.Unit, v)) }

// of says how many processes that is of.
func (r *rated) of() string {
	switch {
	case r.Snapshot && r.Age == nil:
		return "last"
	case r.Snapshot && r.ended:
		return "at the end, of " + processes(r.Processes)
	case r.Snapshot:
		return "now, of " + processes(r.Processes)
	case r.Rate == nil:
		return "-"
	}
	text, mean := processes(r.Processes), int(math.Round(max(1, r.summary.MeanProcesses)))
	if mean < r.Processes {
		text = processes(mean) + " at a time of " + strconv.Itoa(r.Processes)
	}
	if r.Processes > 1 {
		text += ", " + r.perSecond(*r.PerProcess) + " each"
	}
	return text
}

// coverage says how much of the time of the processes was profiled, or how old the snapshots are.
func (r *rated) coverage() string {
	switch {
	case r.Age != nil && r.ended:
		return webui.Length(time.Duration(*r.Age*float64(time.Second))) + " before"
	case r.Age != nil:
		return webui.Ago(time.Duration(*r.Age * float64(time.Second)))
	case r.Rate == nil:
		return "-"
	}
	return fmt.Sprintf("%.3g %% of %s", 100*r.summary.Coverage(), webui.Length(time.Duration(r.summary.Data*float64(time.Second))))
}

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return webui.Count(n, "processe")
}
