// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package mcptools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
)

// defaultRange is how far back a question reaches that names no start.
const defaultRange = time.Hour

// span is the part of a question that is about time.
type span struct {
	From string `json:"from,omitempty" jsonschema:"start of the time range: RFC 3339, or relative to now such as -15m or -7d; an hour before the end by default"`
	To   string `json:"to,omitempty" jsonschema:"end of the time range; now by default"`
}

// selecting is the part of a question that selects profiles.
type selecting struct {
	span

	Service string   `json:"service,omitempty" jsonschema:"service.name; all services by default"`
	Type    string   `json:"type,omitempty" jsonschema:"profile type such as cpu or heap, sample type such as inuse_space, or both: heap:inuse_space"`
	Labels  []string `json:"labels,omitempty" jsonschema:"labels such as pod=a, of a sample, its profile or resource, of which all must match"`
	TraceID string   `json:"trace_id,omitempty" jsonschema:"only samples of this trace: 32 hex digits"`
}

// based is the part of a question that says what to compare with.
type based struct {
	BaseFrom    string   `json:"base_from,omitempty" jsonschema:"start of the time range of the base"`
	BaseTo      string   `json:"base_to,omitempty" jsonschema:"end of the time range of the base"`
	BaseService string   `json:"base_service,omitempty" jsonschema:"service of the base, if it is another one"`
	BaseLabels  []string `json:"base_labels,omitempty" jsonschema:"labels of the base, in place of those with the same key: version=1.2"`
}

// limited is the part of a question that bounds the answer.
type limited struct {
	Limit int `json:"limit,omitempty" jsonschema:"rows to list, 20 by default, 100 at most"`
}

func (l limited) rows() int {
	const byDefault = 20
	switch {
	case l.Limit <= 0:
		return byDefault
	default:
		return min(l.Limit, maxRows)
	}
}

// bounds returns the range in which a question is asked.
func (s span) bounds(now time.Time) (from, to time.Time, err error) {
	parse := func(key, text string, byDefault time.Time) time.Time {
		if text == "" || err != nil {
			return byDefault
		}
		t, wrong := query.ParseTime(text, now)
		if wrong != nil {
			err = fmt.Errorf("%s is %.200q: %w", key, text, wrong)
		}
		return t
	}
	to = parse("to", s.To, now)
	from = parse("from", s.From, to.Add(-defaultRange))
	if err == nil && !from.Before(to) {
		err = fmt.Errorf("from is %.200q: must be before to", s.From)
	}
	return from, to, err
}

func (s *selecting) selection(now time.Time) (sel *query.Selection, err error) {
	sel = &query.Selection{}
	if sel.From, sel.To, err = s.bounds(now); err != nil {
		return nil, err
	}
	if s.Service != "" {
		sel.Services = []string{s.Service}
	}
	if s.Type != "" {
		sel.Types = []string{s.Type}
	}
	if s.TraceID != "" {
		if err := sel.Set("trace_id", s.TraceID); err != nil {
			return nil, fmt.Errorf("trace_id is %.200q: %w", s.TraceID, err)
		}
	}
	return sel, setLabels(sel, "labels", s.Labels)
}

func setLabels(sel *query.Selection, key string, texts []string) error {
	for _, text := range texts {
		if err := sel.Set("label", text); err != nil {
			return fmt.Errorf("%s has %.200q: %w", key, text, err)
		}
	}
	return nil
}

// base returns the selection of the base. By default, it is the time before the range, as long as that.
func (b *based) base(sel *query.Selection, now time.Time) (*query.Selection, error) {
	other := &query.Selection{}
	if b.BaseService != "" {
		other.Services = []string{b.BaseService}
	}
	if err := setLabels(other, "base_labels", b.BaseLabels); err != nil {
		return nil, err
	}
	length := sel.To.Sub(sel.From)
	if len(other.Services) == 0 && len(other.Labels) == 0 || b.BaseFrom != "" || b.BaseTo != "" {
		of := span{b.BaseFrom, b.BaseTo}
		switch {
		case of.To == "" && of.From == "":
			other.From, other.To = sel.From.Add(-length), sel.From
		default:
			var err error
			if of.To == "" {
				of.To = sel.From.Format(time.RFC3339Nano)
			}
			if of.From == "" {
				return nil, errors.New("base_to is set: base_from must be, too")
			}
			if other.From, other.To, err = of.bounds(now); err != nil {
				return nil, fmt.Errorf("the base: %w", err)
			}
		}
	}
	return sel.With(other), nil
}

// about is the part of an answer that says what it is about.
type about struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Notes []string  `json:"notes,omitempty"`
	// More is how many rows are left out.
	More int `json:"rows_left_out,omitempty"`
}

func aboutOf(sel *query.Selection) about {
	return about{From: sel.From.UTC().Truncate(time.Second), To: sel.To.UTC().Truncate(time.Second)}
}

// first returns at most most rows, and notes in a how many are left out.
func first[T any](a *about, rows []T, most int) []T {
	kept := rows[:min(most, len(rows))]
	a.More = len(rows) - len(kept)
	return kept
}

// ask answers a question from the selected profiles.
func (t *tools) ask(ctx context.Context, a *about, read func(context.Context, *query.Source) error) error {
	notes, err := t.read(ctx, read)
	types, isTypes := errors.AsType[*query.TypesError](err)
	switch {
	case isTypes:
		return fmt.Errorf("%w; set %s", err, types.Parameter)
	case errors.Is(err, query.ErrEmpty) && len(notes) > 0:
		return fmt.Errorf("%w; %s", err, notes[0])
	case errors.Is(err, query.ErrEmpty):
		return fmt.Errorf("%w; services lists what there is in a range", err)
	case err != nil:
		return err
	}
	a.Notes = notesOf(notes, a.Notes)
	return nil
}

// value is what an answer says of a sample type.
type value struct {
	Value      string  `json:"value"`
	Rate       float64 `json:"rate_per_second,omitempty"`
	PerProcess string  `json:"per_process,omitempty"`
	Sum        int64   `json:"sum,omitempty"`
	Unit       string  `json:"unit"`
	Processes  int     `json:"processes"`
	Coverage   string  `json:"profiled,omitempty"`
	Age        string  `json:"age,omitempty"`
	Samples    float64 `json:"samples"`
	// Error is the standard error as a part of the value.
	Error float64 `json:"relative_error"`
}

// valueOf says what words do.
func valueOf(w *webui.Words, samples, relativeError float64) value {
	v := value{Value: w.Value(), Unit: name(w.Unit), Processes: w.Summary.Processes, Coverage: w.Coverage(), Age: w.Age(), Samples: round(samples), Error: round(relativeError)}
	switch {
	case w.Snapshots:
		v.Sum, v.Processes = w.Sum, w.Living
	case w.HasValue():
		v.Rate = round(w.Rate)
	}
	if v.Processes > 1 && w.HasValue() {
		v.PerProcess = w.Write(w.ValuePerProcess())
	}
	return v
}
