// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcptools

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query/timeline"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// round keeps four digits, which is more than the error of any answer.
func round(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	const digits = 4
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return 0
	}
	return rounded
}

type servicesQuestion struct {
	span
	limited

	Contains string `json:"contains,omitempty" jsonschema:"only services whose name contains this"`
}

type serviceRow struct {
	Service  string    `json:"service"`
	CPU      string    `json:"cpu,omitempty"`
	Types    []string  `json:"types"`
	Profiles int       `json:"profiles"`
	Samples  int       `json:"samples"`
	Coverage string    `json:"profiled,omitempty"`
	Error    float64   `json:"relative_error_at_most"`
	Newest   time.Time `json:"newest"`

	cores float64
}

type servicesAnswer struct {
	about

	Services []*serviceRow `json:"services"`
}

func (t *tools) services(ctx context.Context, q *servicesQuestion) (a *servicesAnswer, err error) {
	sel := &query.Selection{}
	if sel.From, sel.To, err = q.bounds(t.now()); err != nil {
		return nil, err
	}
	a = &servicesAnswer{about: aboutOf(sel)}
	err = t.ask(ctx, &a.about, func(ctx context.Context, source *query.Source) error {
		totals, err := source.Totals(ctx, sel)
		if err != nil {
			return err
		}
		byName := map[string]*serviceRow{}
		for i := range totals {
			if of := &totals[i]; strings.Contains(of.Service, q.Contains) {
				row := byName[of.Service]
				if row == nil {
					row = &serviceRow{Service: name(of.Service), Types: []string{}}
					byName[of.Service] = row
				}
				row.add(t.wordsOf(of.Series, &of.Kind, sel), of)
			}
		}
		rows := make([]*serviceRow, 0, len(byName))
		for _, row := range byName {
			row.Error = errorAtMost(row.Samples)
			rows = append(rows, row)
		}
		slices.SortFunc(rows, func(a, b *serviceRow) int {
			return cmp.Or(cmp.Compare(b.cores, a.cores), cmp.Compare(a.Service, b.Service))
		})
		a.Services = first(&a.about, rows, q.rows())
		return nil
	})
	return a, err
}

// add adds a total of the service.
func (r *serviceRow) add(w *webui.Words, of *query.Total) {
	const mostTypes = 20
	if typ := typeOf(&of.Kind); len(r.Types) < mostTypes && !slices.Contains(r.Types, typ) {
		r.Types = append(r.Types, typ)
	}
	// Sample types of one profile count its samples once.
	r.Profiles, r.Samples = max(r.Profiles, of.Profiles), max(r.Samples, of.Samples)
	if end := query.TimeOf(of.End).UTC().Truncate(time.Second); end.After(r.Newest) {
		r.Newest = end
	}
	if of.SampleType == "cpu" && w.HasValue() && w.Rate > r.cores {
		r.cores, r.CPU, r.Coverage = w.Rate, w.Value(), w.Coverage()
	}
}

// typeOf writes a kind as the parameter type takes it.
func typeOf(k *query.Kind) string {
	if k.Type == "" {
		return name(k.SampleType)
	}
	return name(k.Type + ":" + k.SampleType)
}

// errorAtMost bounds the relative error of values that are made of this many samples in OTLP, each of which stands for one of the profiler or more.
func errorAtMost(samples int) float64 {
	return round(1 / math.Sqrt(float64(max(samples, 1))))
}

// wordsOf says what a series is over a range. The series may be nil, of Profiles without processes.
func (t *tools) wordsOf(series *query.Series, kind *query.Kind, sel *query.Selection) *webui.Words {
	w := &webui.Words{SampleType: kind.SampleType, Unit: kind.Unit, From: sel.From, To: sel.To, Now: t.now()}
	if series != nil {
		w.Reading = series.Read(series.Bounds(sel))
	}
	return w
}

type typesQuestion struct {
	selecting
	limited
}

type typeRow struct {
	Service string `json:"service"`
	Type    string `json:"type"`
	value

	Profiles int `json:"profiles"`
}

type typesAnswer struct {
	about

	Types []typeRow `json:"types"`
}

func (t *tools) types(ctx context.Context, q *typesQuestion) (*typesAnswer, error) {
	sel, err := q.selection(t.now())
	if err != nil {
		return nil, err
	}
	a := &typesAnswer{about: aboutOf(sel)}
	a.about.Notes = []string{"relative_error is an upper bound: each sample of OTLP stands for one of the profiler or more"}
	err = t.ask(ctx, &a.about, func(ctx context.Context, source *query.Source) error {
		totals, err := source.Totals(ctx, sel)
		if err != nil {
			return err
		}
		rows := make([]typeRow, len(totals))
		for i := range totals {
			of := &totals[i]
			rows[i] = typeRow{
				Service: name(of.Service), Type: typeOf(&of.Kind), Profiles: of.Profiles,
				value: valueOf(t.wordsOf(of.Series, &of.Kind, sel), float64(of.Samples), errorAtMost(of.Samples)),
			}
			if rows[i].Sum == 0 && rows[i].Rate == 0 { // without a duration, there is only a sum
				rows[i].Sum = of.Sum
			}
		}
		a.Types = first(&a.about, rows, q.rows())
		return nil
	})
	return a, err
}

type topQuestion struct {
	selecting
	limited

	By string `json:"by,omitempty" jsonschema:"self (of the function alone, the default) or total (with what it calls)"`
}

type functionRow struct {
	Function string  `json:"function"`
	Self     string  `json:"self"`
	SelfPart float64 `json:"self_percent"`
	Total    string  `json:"total"`
	Part     float64 `json:"total_percent"`
	// Error is the standard error of what the rows are sorted by.
	Error float64 `json:"relative_error"`
}

type topAnswer struct {
	about

	Type      string        `json:"type"`
	All       value         `json:"all"`
	Functions []functionRow `json:"functions"`
}

func (t *tools) top(ctx context.Context, q *topQuestion) (*topAnswer, error) {
	sel, err := q.selection(t.now())
	if err != nil {
		return nil, err
	}
	bySelf := q.By == "" || q.By == "self"
	if !bySelf && q.By != "total" {
		return nil, fmt.Errorf("by is %.200q: must be self or total", q.By)
	}
	a := &topAnswer{}
	err = t.compare(ctx, sel, nil, &a.about, func(c *query.Comparison, of *query.ComparedType) error {
		words, all := t.measure(of, &of.New, sel)
		a.Type, a.All, a.Functions = name(of.Type), all, nil
		functions := c.Functions(of)
		key := func(f *query.FunctionChange) (v, standardError float64) {
			if bySelf {
				return f.New.Self, f.SelfError
			}
			return f.New.Total, f.TotalError
		}
		slices.SortStableFunc(functions, func(x, y query.FunctionChange) int {
			a, _ := key(&x)
			b, _ := key(&y)
			return cmp.Compare(math.Abs(b), math.Abs(a))
		})
		whole := of.New.Size * of.New.Scale
		for _, f := range first(&a.about, functions, q.rows()) {
			v, standardError := key(&f)
			a.Functions = append(a.Functions, functionRow{
				Function: name(f.Function), Self: words.Write(f.New.Self), SelfPart: percent(f.New.Self, whole),
				Total: words.Write(f.New.Total), Part: percent(f.New.Total, whole), Error: round(part(standardError, v)),
			})
		}
		return nil
	})
	return a, err
}

// compare reads both sides of a comparison. base may be nil.
func (t *tools) compare(ctx context.Context, sel, base *query.Selection, a *about, use func(*query.Comparison, *query.ComparedType) error) error {
	var notes []string
	err := t.ask(ctx, a, func(ctx context.Context, source *query.Source) error {
		c, err := query.Compare(ctx, source, sel, source, base)
		if err != nil {
			return err
		}
		*a, notes = aboutOf(sel), c.Notes
		return use(c, c.Shown())
	})
	a.Notes = notesOf(a.Notes, notes)
	return err
}

// measure says what is compared of a side, and how its values are written.
func (t *tools) measure(of *query.ComparedType, m *query.Measure, sel *query.Selection) (*webui.Words, value) {
	w := &webui.Words{SampleType: of.Type, Unit: of.Unit, Reading: m.Reading, From: sel.From, To: sel.To, Now: t.now()}
	v := valueOf(w, m.Samples, m.RelativeError())
	w.Snapshots = of.Basis != query.Rates // what has no rate is written as a sum
	v.Value = w.Write(m.Value())
	return w, v
}

// ofOne makes the numbers those of one process on average, as the value is.
func (v *value) ofOne(of *query.ComparedType, m *query.Measure) {
	v.PerProcess = ""
	switch of.Basis {
	case query.Rates:
		v.Rate = round(m.Value())
	case query.Levels, query.Values:
		v.Sum = int64(m.Value())
	}
}

func part(v, of float64) float64 {
	if of == 0 {
		return 0
	}
	return math.Abs(v / of)
}

func percent(v, of float64) float64 { return round(100 * part(v, of)) }

type callersQuestion struct {
	selecting
	limited

	Function string `json:"function" jsonschema:"the name of the function, as top gives it"`
}

type neighborRow struct {
	Function string  `json:"function"`
	Value    string  `json:"value"`
	Part     float64 `json:"percent"`
}

type callersAnswer struct {
	about

	Type     string        `json:"type"`
	Function string        `json:"function"`
	All      value         `json:"all"`
	Self     string        `json:"self"`
	Total    string        `json:"total"`
	Part     float64       `json:"total_percent"`
	Error    float64       `json:"relative_error"`
	Callers  []neighborRow `json:"callers"`
	Callees  []neighborRow `json:"callees"`
}

func (t *tools) callers(ctx context.Context, q *callersQuestion) (*callersAnswer, error) {
	sel, err := q.selection(t.now())
	if err != nil {
		return nil, err
	}
	a := &callersAnswer{}
	err = t.compare(ctx, sel, nil, &a.about, func(c *query.Comparison, of *query.ComparedType) error {
		found, ok := c.Neighbors(of, q.Function)
		if !ok {
			return fmt.Errorf("no stack has the function %q: names are those of top, in full", name(q.Function))
		}
		words, all := t.measure(of, &of.New, sel)
		whole := of.New.Size * of.New.Scale
		a.Type, a.Function, a.All = name(of.Type), name(q.Function), all
		a.Self, a.Total, a.Part = words.Write(found.Self), words.Write(found.Total), percent(found.Total, whole)
		a.Error = round(1 / math.Sqrt(max(1, of.New.Samples*part(found.Total, whole))))
		rows := func(all []query.Neighbor) []neighborRow {
			rows := []neighborRow{}
			for _, n := range all[:min(q.rows(), len(all))] {
				rows = append(rows, neighborRow{name(n.Function), words.Write(n.Value), percent(n.Value, found.Total)})
			}
			return rows
		}
		a.Callers, a.Callees = rows(found.Callers), rows(found.Callees)
		a.More = len(found.Callers) + len(found.Callees) - len(a.Callers) - len(a.Callees)
		return nil
	})
	return a, err
}

type diffQuestion struct {
	selecting
	based
	limited
}

type changeRow struct {
	Function string `json:"function"`
	Base     string `json:"base_total"`
	New      string `json:"new_total"`
	Change   string `json:"change"`
	Error    string `json:"standard_error"`
	Noise    bool   `json:"noise"`
}

type diffAnswer struct {
	about

	BaseFrom  time.Time   `json:"base_from"`
	BaseTo    time.Time   `json:"base_to"`
	Type      string      `json:"type"`
	Compared  string      `json:"compared"`
	Base      value       `json:"base"`
	New       value       `json:"new"`
	Change    float64     `json:"change_percent"`
	Noise     bool        `json:"noise"`
	Functions []changeRow `json:"functions"`
}

func (t *tools) diff(ctx context.Context, q *diffQuestion) (*diffAnswer, error) {
	sel, err := q.selection(t.now())
	if err != nil {
		return nil, err
	}
	base, err := q.base(sel, t.now())
	if err != nil {
		return nil, err
	}
	a := &diffAnswer{}
	err = t.compare(ctx, sel, base, &a.about, func(c *query.Comparison, of *query.ComparedType) error {
		before, ofBase := t.measure(of, &of.Base, base)
		after, ofNew := t.measure(of, &of.New, sel)
		a.BaseFrom, a.BaseTo = base.From.UTC().Truncate(time.Second), base.To.UTC().Truncate(time.Second)
		a.Type, a.Compared = name(of.Type), string(of.Basis)
		if c.PerProcess {
			a.Compared += " of one process on average"
		}
		a.Base, a.New = ofBase, ofNew
		if c.PerProcess {
			a.Base.ofOne(of, &of.Base)
			a.New.ofOne(of, &of.New)
		}
		if change, ok := of.Change(); ok {
			a.Change = round(100 * change)
		}
		a.Noise = of.Noise()
		a.Functions = nil
		for _, f := range first(&a.about, c.Functions(of), q.rows()) {
			a.Functions = append(a.Functions, changeRow{
				name(f.Function), before.Write(f.Base.Total), after.Write(f.New.Total), after.Change(f.TotalChange()), after.Write(f.TotalError), f.Noise,
			})
		}
		return nil
	})
	return a, err
}

type seriesQuestion struct {
	selecting

	Step string `json:"step,omitempty" jsonschema:"length of a step such as 1m; about 30 steps by default, 120 at most"`
}

type step struct {
	Time      time.Time `json:"time"`
	Value     string    `json:"value"`
	Processes float64   `json:"processes"`
	Data      float64   `json:"data_percent"`
}

type seriesRow struct {
	Service string `json:"service"`
	Type    string `json:"type"`
	value

	Steps []step `json:"steps"`
}

type seriesAnswer struct {
	about

	Step   string      `json:"step"`
	Series []seriesRow `json:"series"`
}

func (t *tools) series(ctx context.Context, q *seriesQuestion) (*seriesAnswer, error) {
	const defaultSteps, mostSeries = 30, 5
	sel, err := q.selection(t.now())
	if err != nil {
		return nil, err
	}
	length := max((sel.To.Sub(sel.From) / defaultSteps).Round(time.Second), time.Second)
	if q.Step != "" {
		if length, err = time.ParseDuration(q.Step); err != nil || length < time.Second {
			return nil, fmt.Errorf("step is %.200q: must be a duration of a second or more, such as 1m", q.Step)
		}
	}
	n := int((sel.To.Sub(sel.From) + length - 1) / length)
	if n > maxSteps {
		return nil, fmt.Errorf("step is %s: makes %d steps, must be %d at most", length, n, maxSteps)
	}
	a := &seriesAnswer{about: aboutOf(sel), Step: length.String()}
	err = t.ask(ctx, &a.about, func(ctx context.Context, source *query.Source) error {
		totals, err := source.Totals(ctx, sel)
		if err != nil {
			return err
		}
		if len(totals) == 0 {
			return query.ErrEmpty
		}
		slices.SortStableFunc(totals, func(a, b query.Total) int {
			return cmp.Or(cmp.Compare(a.Standing(), b.Standing()), cmp.Compare(b.Samples, a.Samples))
		})
		a.Series = nil
		for _, of := range first(&a.about, totals, mostSeries) {
			w := t.wordsOf(of.Series, &of.Kind, sel)
			row := seriesRow{Service: name(of.Service), Type: typeOf(&of.Kind), value: valueOf(w, float64(of.Samples), errorAtMost(of.Samples)), Steps: []step{}}
			if of.Series != nil {
				for i, s := range of.Series.Steps(uint64(sel.From.UnixNano()), uint64(length), n) { // #nosec G115 -- ParseTime accepts no time before the epoch
					if s.Data > 0 {
						row.Steps = append(row.Steps, step{sel.From.Add(time.Duration(i) * length).UTC(), w.Write(s.Rate), round(s.Processes), percent(s.Data, 1)})
					}
				}
			}
			a.Series = append(a.Series, row)
		}
		return nil
	})
	return a, err
}

type growthRow struct {
	Service string  `json:"service"`
	Type    string  `json:"type"`
	Before  string  `json:"before"`
	After   string  `json:"after"`
	Change  float64 `json:"change_percent,omitempty"`
	IsNew   bool    `json:"new,omitempty"`
	Ended   bool    `json:"ended,omitempty"`
	Noise   bool    `json:"noise"`
}

type grewAnswer struct {
	about

	Before string      `json:"before"`
	After  string      `json:"after"`
	Rows   []growthRow `json:"rows"`
}

func (t *tools) grew(ctx context.Context, q *typesQuestion) (*grewAnswer, error) {
	sel, err := q.selection(t.now())
	if err != nil {
		return nil, err
	}
	a := &grewAnswer{about: aboutOf(sel)}
	err = t.ask(ctx, &a.about, func(ctx context.Context, source *query.Source) error {
		found, err := source.Growths(ctx, sel)
		if err != nil {
			return err
		}
		if len(found.Rows) == 0 {
			return query.ErrEmpty
		}
		between := func(of *query.Selection) string {
			return of.From.UTC().Format(time.RFC3339) + " to " + of.To.UTC().Format(time.RFC3339)
		}
		a.Before, a.After, a.Rows = between(found.First), between(found.Last), nil
		for _, g := range first(&a.about, found.Rows, q.rows()) {
			w := webui.NewWords(g.SampleType, g.Unit, g.Snapshot)
			row := growthRow{Service: name(g.Service), Type: typeOf(&g.Kind), Before: w.Write(g.Before), After: w.Write(g.After), IsNew: g.IsNew, Ended: g.HasEnded, Noise: g.Noise}
			if change, ok := g.Change(); ok {
				row.Change = round(100 * change)
			}
			a.Rows = append(a.Rows, row)
		}
		return nil
	})
	return a, err
}

type traceQuestion struct {
	span
	limited

	TraceID string `json:"trace_id" jsonschema:"32 hex digits"`
}

type spanRow struct {
	Service string `json:"service"`
	SpanID  string `json:"span_id"`
	Samples int64  `json:"samples"`
	OnCPU   string `json:"on_cpu"`
	OffCPU  string `json:"off_cpu"`
	Locked  string `json:"waiting_for_locks"`
	// Error is that of the time, by the number of samples. Time that a profiler has measured rather than sampled has none.
	Error float64 `json:"relative_error_at_most"`
}

type traceAnswer struct {
	about

	Spans []spanRow `json:"spans"`
}

func (t *tools) trace(ctx context.Context, q *traceQuestion) (*traceAnswer, error) {
	sel, err := (&selecting{span: q.span, TraceID: q.TraceID}).selection(t.now())
	if err != nil {
		return nil, err
	}
	if q.TraceID == "" {
		return nil, errors.New("trace_id is empty: must be 32 hex digits")
	}
	a := &traceAnswer{about: aboutOf(sel)}
	err = t.ask(ctx, &a.about, func(ctx context.Context, source *query.Source) error {
		const share = 8 // of the memory of a query
		spans := timeline.SpansWithin(source.Options.MaxMemory / share)
		err := source.Each(ctx, sel, func(_ *archive.Record, pd pprofile.Profiles) error { return spans.Add(ctx, pd) })
		if err != nil {
			return err
		}
		all := spans.Spans()
		if len(all) == 0 {
			return query.ErrEmpty
		}
		slices.SortStableFunc(all, func(x, y *timeline.Span) int {
			return cmp.Compare(y.OnCPU+y.OffCPU+y.Locked, x.OnCPU+x.OffCPU+x.Locked)
		})
		a.Spans, a.Notes = nil, []string{"Without profiles of time off the CPU, the time of a span that has no sample is unknown, not zero"}
		for _, s := range first(&a.about, all, q.rows()) {
			length := func(ns uint64) string { return webui.Quantity("nanoseconds", float64(ns)) }
			a.Spans = append(a.Spans, spanRow{
				Service: name(s.Service), SpanID: hex.EncodeToString(s.ID[:]), Samples: s.Samples,
				OnCPU: length(s.OnCPU), OffCPU: length(s.OffCPU), Locked: length(s.Locked), Error: errorAtMost(int(s.Samples)),
			})
		}
		a.More += spans.Left
		return nil
	})
	return a, err
}
