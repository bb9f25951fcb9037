// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"

	"github.com/google/pprof/profile"
)

// Sample is a call stack with the data of its record.
type Sample struct {
	CallStack
	Time      int64 // nanoseconds since 1970; 0 is unknown
	Period    int64 // milliseconds
	Allocated int64 // bytes, of an allocation
	Event     string
	TraceID   string // 32 hexadecimal digits, or ""
	SpanID    string // 16 hexadecimal digits, or ""
}

// Builder makes a pprof message of call stacks that are text.
type Builder struct {
	options    Options
	allocation bool
	p          profile.Profile
	functions  map[Frame]*profile.Function // without their lines
	locations  map[Frame]*profile.Location
	span       span
}

// NewBuilder returns a Builder of allocations, whose values are bytes, or of samples, whose
// values are as those of [Pprof].
func NewBuilder(o Options, allocation bool) *Builder {
	// Each profile has copies of the types: encoding writes to them.
	b := &Builder{options: o, allocation: allocation, functions: map[Frame]*profile.Function{}, locations: map[Frame]*profile.Location{}}
	switch {
	case allocation:
		b.p.SampleType = []*profile.ValueType{new(allocationBytes)}
	case o.Wall:
		b.p.SampleType = []*profile.ValueType{new(samplesCount), new(wallNanoseconds)}
	default:
		b.p.SampleType = []*profile.ValueType{new(samplesCount)}
	}
	return b
}

// Add adds a sample.
func (b *Builder) Add(s Sample) {
	period := nanoseconds(s.Period)
	values := []int64{1, period}[:len(b.p.SampleType)]
	if b.allocation {
		period, values = 0, []int64{s.Allocated}
	}
	b.span.add(max(s.Time, 0), period)
	sample := &profile.Sample{Value: values, Label: map[string][]string{}, NumLabel: map[string][]int64{}}
	for _, frame := range s.Frames {
		sample.Location = append(sample.Location, b.location(frame))
	}
	for key, text := range map[string]string{
		"thread.name": s.ThreadName, "thread.state": s.ThreadState, LabelEvent: s.Event, labelTraceID: s.TraceID, labelSpanID: s.SpanID,
	} {
		if text != "" {
			sample.Label[key] = []string{text}
		}
	}
	for key, number := range map[string]int64{"thread.id": s.ThreadID, "thread.os.id": s.ThreadOSID, labelTimestamp: s.Time} {
		if number > 0 && (key != labelTimestamp || b.options.Timestamps) {
			sample.NumLabel[key] = []int64{number}
		}
	}
	b.p.Sample = append(b.p.Sample, sample)
}

func (b *Builder) location(f Frame) *profile.Location {
	if known := b.locations[f]; known != nil {
		return known
	}
	named := Frame{Function: f.Function, File: f.File}
	function := b.functions[named]
	if function == nil {
		function = &profile.Function{ID: uint64(len(b.functions) + 1), Name: f.Function, Filename: f.File}
		b.functions[named] = function
		b.p.Function = append(b.p.Function, function)
	}
	location := &profile.Location{ID: uint64(len(b.locations) + 1), Line: []profile.Line{{Function: function, Line: f.Line}}}
	b.locations[f] = location
	b.p.Location = append(b.p.Location, location)
	return location
}

// Finish returns the message. The Builder must not be used again.
func (b *Builder) Finish() []byte {
	b.p.TimeNanos, b.p.DurationNanos = b.span.first, b.span.length()
	if period := b.span.commonPeriod(); period > 0 {
		b.p.PeriodType, b.p.Period = new(wallNanoseconds), period
	}
	var message bytes.Buffer
	_ = b.p.WriteUncompressed(&message) // a buffer takes all
	return message.Bytes()
}
