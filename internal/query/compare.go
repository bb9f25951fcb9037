// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
)

// Comparison compares the rates of two selections, of which the base is one. It is the only way in which anything is compared. Without a
// base it has what the selection is.
//
// Values of intervals are compared as rates per second of the series, those of snapshots as the sums of the living processes. If the
// selections differ in more than their ranges, such as a canary and the stable version, they are those of one process on average: see
// PerProcess.
type Comparison struct {
	// New is the selection, and Base what it is compared with, or nil.
	New, Base *Side
	// Types are the sample types of both sides, those of New first.
	Types []*ComparedType
	// PerProcess: rates and levels are divided by the number of processes that live.
	PerProcess bool
	// Notes tell a reader how to understand the values.
	Notes []string

	maxMemory int64
}

// Side is one side of a comparison.
type Side struct {
	*Selection

	// Result is the sum of what is selected, with the series, and Pprof the same as one pprof.
	Result *Result
	Pprof  *profile.Profile
}

// Basis is what is compared of a sample type.
type Basis string

const (
	// Rates: intervals per second.
	Rates Basis = "rate"
	// Levels: snapshots of living processes.
	Levels Basis = "level"
	// Values: sums, because Profiles state no duration.
	Values Basis = "value"
)

// ComparedType is a sample type.
type ComparedType struct {
	Type, Unit string
	Basis      Basis
	// New and Base are what people read of both sides, zero for one that does not have the type.
	New, Base Measure
}

// Measure is a sample type of a side.
type Measure struct {
	rate.Reading

	// Total is the sum of the values of the pprof, and Size that of the values without their signs. Samples is the number of samples that a
	// profiler has taken for them, or a lower bound: see SamplesOf. The standard error of the total is its part 1/√Samples.
	Total, Size, Samples float64
	// Scale makes of a value of the pprof what is compared: a rate per second, a level or a value.
	Scale float64

	column int // of the pprof; negative without one
}

// Value is what is compared.
func (m *Measure) Value() float64 { return m.Total * m.Scale }

// RelativeError is the relative standard error of Value, by the number of samples: 1 without any.
func (m *Measure) RelativeError() float64 { return 1 / math.Sqrt(max(1, m.Samples)) }

// Change is the change of what is compared, as a part of that of the base. ok is false if that is 0.
func (t *ComparedType) Change() (change float64, ok bool) {
	return rate.Change(t.Base.Value(), t.New.Value())
}

// Noise reports whether the change of the type may be chance.
func (t *ComparedType) Noise() bool {
	after, base := t.New.Value(), t.Base.Value()
	return isNoise(after-base, math.Hypot(after*t.New.RelativeError(), base*t.Base.RelativeError()))
}

// isNoise reports whether a change may be chance, given its standard error.
func isNoise(change, deviation float64) bool {
	const deviations = 3 // by chance, 3 of 1,000 are larger
	return math.Abs(change) <= deviations*deviation
}

// Compare compares what is selected of a source with what base selects of baseSource, unless base is nil. It reads each of them once. The
// error is ErrEmpty if nothing is selected.
func Compare(ctx context.Context, source *Source, sel *Selection, baseSource *Source, base *Selection) (*Comparison, error) {
	c := &Comparison{maxMemory: source.Options.MaxMemory}
	var err error
	if c.New, err = readSide(ctx, source, sel); err != nil {
		return nil, err
	}
	if base != nil {
		if c.Base, err = readSide(ctx, baseSource, base); err != nil {
			return nil, fmt.Errorf("the base: %w", err)
		}
		if periodType(c.New.Pprof) != periodType(c.Base.Pprof) {
			return nil, fmt.Errorf("the base has another profile type than the selection: %s and %s", periodType(c.Base.Pprof), periodType(c.New.Pprof))
		}
		c.PerProcess = sel.Differs(base)
	}
	c.measure()
	c.note()
	return c, ctx.Err()
}

func readSide(ctx context.Context, source *Source, sel *Selection) (*Side, error) {
	side := &Side{Selection: sel}
	var err error
	if side.Result, err = source.MergeTimed(ctx, sel); err == nil {
		side.Pprof, err = side.Result.Pprof(ctx)
	}
	return side, err
}

// Differs reports whether two selections differ in more than their ranges.
func (s *Selection) Differs(other *Selection) bool {
	return !slices.Equal(s.Services, other.Services) || !slices.Equal(s.Types, other.Types) || !slices.EqualFunc(s.Labels, other.Labels, labels.Same)
}

// With returns the selection with what other restricts in place of what s does: services, range and, of labels, those with the same name.
// So the base of a comparison is selected.
func (s *Selection) With(other *Selection) *Selection {
	with := *s
	if len(other.Services) > 0 {
		with.Services = other.Services
	}
	if !other.From.IsZero() || !other.To.IsZero() {
		with.From, with.To = other.From, other.To
	}
	if len(other.Labels) > 0 {
		with.Labels = slices.DeleteFunc(slices.Clone(s.Labels), func(m *labels.Matcher) bool {
			return slices.ContainsFunc(other.Labels, func(by *labels.Matcher) bool { return labels.Name(by.Name) == labels.Name(m.Name) })
		})
		with.Labels = append(with.Labels, other.Labels...)
	}
	return &with
}

// measure finds the sample types of both sides, and how they are compared.
func (c *Comparison) measure() {
	sides := [...]*Side{c.New, c.Base}
	for i, side := range sides {
		if side == nil {
			continue
		}
		for column, t := range side.Pprof.SampleType {
			of := c.Type(t.Type, t.Unit)
			if of == nil {
				of = &ComparedType{Type: t.Type, Unit: t.Unit, New: Measure{column: -1, Scale: 1}, Base: Measure{column: -1, Scale: 1}}
				c.Types = append(c.Types, of)
			}
			if m := [...]*Measure{&of.New, &of.Base}[i]; m.column < 0 {
				*m = side.measure(column)
			}
		}
	}
	for _, t := range c.Types {
		t.setScales(c.PerProcess)
	}
}

// Type returns a sample type, nil if no side has it.
func (c *Comparison) Type(typ, unit string) *ComparedType {
	i := slices.IndexFunc(c.Types, func(t *ComparedType) bool { return t.Type == typ && t.Unit == unit })
	if i < 0 {
		return nil
	}
	return c.Types[i]
}

// Shown returns the sample type that readers of the pprof see first.
func (c *Comparison) Shown() *ComparedType {
	i, err := c.New.Pprof.SampleIndexByName("")
	if err != nil {
		return c.Types[0]
	}
	return c.Type(c.New.Pprof.SampleType[i].Type, c.New.Pprof.SampleType[i].Unit)
}

// measure returns what people read of a sample type of a side.
func (s *Side) measure(column int) Measure {
	m := Measure{Samples: SamplesOf(s.Pprof, column), Scale: 1, column: column}
	for _, sample := range s.Pprof.Sample {
		m.Total += float64(sample.Value[column])
		m.Size += math.Abs(float64(sample.Value[column]))
	}
	t := s.Pprof.SampleType[column]
	for _, of := range s.Result.Series {
		if of.SampleType == t.Type && of.Unit == t.Unit {
			m.Reading = of.Read(of.Bounds(s.Selection))
			break
		}
	}
	return m
}

// setScales decides what is compared. A side without samples of the type has nothing that tells, and follows the other.
func (t *ComparedType) setScales(perProcess bool) {
	seconds := func(m *Measure) float64 { return m.Summary.Seconds(m.Total) }
	isRate := func(m *Measure) bool { return m.column < 0 || !m.Snapshots && seconds(m) > 0 }
	sides := [...]*Measure{&t.New, &t.Base}
	switch {
	case t.New.Snapshots || t.Base.Snapshots:
		t.Basis = Levels
	case isRate(&t.New) && isRate(&t.Base):
		t.Basis = Rates
	default:
		t.Basis = Values
	}
	for _, m := range sides {
		switch {
		case m.column < 0:
		case t.Basis == Rates:
			m.Scale = 1 / seconds(m)
			if perProcess && m.MeanProcesses > 0 {
				m.Scale /= m.MeanProcesses
			}
		case t.Basis == Levels && perProcess:
			m.Scale = 1 / float64(max(1, m.Living))
		}
	}
}

// CompareTotals compares the totals of two sides of one sample type as Compare does. It needs no pprof of them.
func CompareTotals(after, base *Side, total, totalOfBase float64) *ComparedType {
	of := func(s *Side, total float64) Measure {
		m := Measure{Total: total, Scale: 1}
		if len(s.Result.Series) > 0 {
			m.Reading = s.Result.Series[0].Read(s.Result.Series[0].Bounds(s.Selection))
		}
		return m
	}
	t := &ComparedType{New: of(after, total), Base: of(base, totalOfBase)}
	t.setScales(after.Differs(base.Selection))
	return t
}

// note sets the notes.
func (c *Comparison) note() {
	_, cumulative := c.New.Result.Snapshots()
	if len(cumulative) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("Values of %s count since the start of each process", several(cumulative, ", ")))
	}
	if n := c.New.Result.Superseded; n > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("Only the last snapshot of each resource counts; earlier Profiles skipped: %d", n))
	}
	if n := c.New.Result.Ended; n > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("Only snapshots of living processes count; those of ended ones skipped: %d", n))
	}
	if c.Base == nil {
		return
	}
	if c.Shown().Basis == Values {
		c.Notes = append(c.Notes, "The profiles state no duration, so there is no rate: values are compared")
	}
	if c.PerProcess {
		c.Notes = append(c.Notes, "The selections differ in more than their time: values of one process on average are compared")
	}
}

// Pprof returns the selection as one pprof, minus the base, in values of the selection: those of the base are multiplied so that the values
// differ as what is compared does. apart is that of Difference.
func (c *Comparison) Pprof(apart bool) (*profile.Profile, error) {
	if c.Base == nil {
		return c.New.Pprof, nil
	}
	factor := func(t *profile.ValueType) float64 { return c.Type(t.Type, t.Unit).Factor() }
	return Difference(c.New.Pprof, c.Base.Pprof, factor, c.maxMemory, apart)
}

// Factor is by how much values of the base are multiplied, so that they differ from those of the selection as what is compared does.
func (t *ComparedType) Factor() float64 {
	if t.New.column < 0 {
		return 1
	}
	return t.Base.Scale / t.New.Scale
}
