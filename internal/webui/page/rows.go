// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// stands returns how well a sample type stands for its profile type; less is better.
func (k kind) stands() int { return query.Kind(k).Standing() }

// newRow returns the row of a total and that of the base, which is nil if there is none. params select both.
func newRow(params *params, t, base *total) *row {
	const none = "–"
	shown := map[string]string{"type": t.selector()}
	r := &row{total: t, Query: params.with(shown, ownOfLanding...), Value: none, Base: none}
	v, was := 0.0, 0.0
	if t.Profiles > 0 {
		v = t.shown()
		words := t.words(params.now, params.selected)
		r.Value, r.Each = t.written(), words.Processes()
		r.Coverage, r.Newest = t.coverage(words), webui.Ago(params.now.Sub(query.TimeOf(t.Last)))
	}
	if base != nil {
		was = base.shown()
		words := base.words(params.now, params.base)
		r.Base, r.BaseEach, r.Before = base.written(), words.Processes(), base.coverage(words)
	}
	if base == nil || t.Profiles == 0 {
		return r
	}
	if !t.hasRate() || !base.hasRate() {
		return r
	}
	perProcess := params.selected.Differs(params.base)
	if perProcess {
		v, was = t.ofProcess(), base.ofProcess()
	}
	r.setChange(t.value, was, v, perProcess)
	switch {
	case min(t.Samples, base.Samples) < fewSamples:
		r.Trend = "few"
	case v > was:
		r.Trend = "up"
	}
	return r
}

// compare takes the change of a comparison, which is that of one process if the selections differ in more than their time.
func (r *row) compare(compared *query.Comparison) {
	of := compared.Shown()
	before, after := of.Base.Value(), of.New.Value()
	write := r.quantity
	if of.Basis != query.Values {
		write = r.value
	}
	r.setChange(write, before, after, compared.PerProcess)
	switch {
	case of.Noise():
		r.Trend = "few"
	case after > before:
		r.Trend = "up"
	}
}

// setChange writes the change from one value to another, which may be those of one process.
func (r *row) setChange(write func(float64) string, before, after float64, perProcess bool) {
	r.Change, r.By, r.Trend = inPercent(before, after), signed(write, after-before), "down"
	if perProcess {
		r.By += fmt.Sprintf(" for each process: %s, before %s", write(after), write(before))
	}
}

// inPercent writes a change, "" from 0.
func inPercent(before, after float64) string {
	change, ok := rate.Change(before, after)
	if !ok {
		return ""
	}
	return signed(func(v float64) string { return fmt.Sprintf("%.3g %%", v) }, change*100)
}

// ofProcess is what is shown of one process on average.
func (t *total) ofProcess() float64 {
	if t.Snapshot {
		return float64(t.Sum) / float64(max(1, t.Living))
	}
	return t.PerProcess
}

// IsTimed reports whether the profiles state a time.
func (r *row) IsTimed() bool { return r.Last > 1 }

// Profiled writes the sum of what was profiled.
func (r *row) Profiled() string { return r.quantity(r.profiled) }

// fewSamples: a change of fewer samples may be chance.
const fewSamples = 20

// signed writes a value with its sign.
func signed(write func(float64) string, v float64) string {
	if v < 0 {
		return "−" + write(-v)
	}
	return "+" + write(v)
}

// hasRate reports whether the profiles have a rate, or a level.
func (t *total) hasRate() bool { return t.Snapshot || t.Data > 0 }

// shown is the rate of the series, or the sum of the living snapshots.
func (t *total) shown() float64 {
	if t.Snapshot {
		return float64(t.Sum)
	}
	return t.Rate
}

// written writes what is shown, or the sum of profiles that have no rate.
func (t *total) written() string {
	if !t.hasRate() {
		return t.quantity(float64(t.Sum))
	}
	return t.value(t.shown())
}

// words says what people read of the total.
func (t *total) words(now time.Time, sel *query.Selection) *webui.Words {
	return &webui.Words{
		SampleType: t.SampleType, Unit: t.Unit, From: sel.From, To: sel.To, Now: now,
		Reading: rate.Reading{Summary: t.Summary, Snapshots: t.Snapshot, Sum: t.Sum, Living: t.Living, At: t.At},
	}
}

// coverage says how much of the time of the processes was profiled, and how much of the range has data.
func (t *total) coverage(words *webui.Words) string {
	switch {
	case t.Snapshot:
		return ""
	case !t.hasRate():
		return "the sum: profiles without a duration"
	default:
		return "profiled " + words.Coverage()
	}
}

// selector selects the profile type, or without one the sample type.
func (k kind) selector() string {
	if k.Type == "" {
		return ":" + k.SampleType
	}
	return k.Type
}
