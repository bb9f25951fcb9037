// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"google.golang.org/protobuf/encoding/protowire"
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
	m          message
	functions  map[Frame]uint64 // without their lines
	locations  map[Frame]uint64
	span       span
}

// NewBuilder returns a Builder of allocations, whose values are bytes, or of samples, whose
// values are as those of [Pprof].
func NewBuilder(o Options, allocation bool) *Builder {
	b := &Builder{
		options: o, allocation: allocation,
		m:         message{first: 1, strings: map[string]uint64{}},
		functions: map[Frame]uint64{}, locations: map[Frame]uint64{},
	}
	b.m.data = protowire.AppendBytes(protowire.AppendTag(nil, profileString, protowire.BytesType), nil)
	return b
}

// Add adds a sample.
func (b *Builder) Add(s Sample) {
	at, period := s.Time, nanoseconds(s.Period)
	if b.allocation {
		period = 0
	}
	b.span.add(max(at, 0), period)
	locations := make([]uint64, len(s.Frames))
	for i, frame := range s.Frames {
		locations[i] = b.location(frame)
	}
	b.m.field(profileSample, func(data []byte) []byte {
		for _, id := range locations {
			data = appendVarint(data, sampleLocation, id)
		}
		for _, v := range b.values(s, period) {
			data = appendVarint(data, sampleValue, uint64(v))
		}
		return b.labels(data, s, at)
	})
}

func (b *Builder) types() []ValueType {
	switch {
	case b.allocation:
		return []ValueType{allocationBytes}
	case b.options.Wall:
		return []ValueType{samplesCount, wallNanoseconds}
	}
	return []ValueType{samplesCount}
}

func (b *Builder) values(s Sample, period int64) []int64 {
	if b.allocation {
		return []int64{s.Allocated}
	}
	return []int64{1, period}[:len(b.types())]
}

func (b *Builder) labels(data []byte, s Sample, at int64) []byte {
	for _, l := range []struct{ key, text string }{
		{"thread.name", s.ThreadName}, {"thread.state", s.ThreadState}, {LabelEvent, s.Event},
		{labelTraceID, s.TraceID}, {labelSpanID, s.SpanID},
	} {
		if l.text != "" {
			data = label(data, b.m.text(l.key), b.m.text(l.text), 0)
		}
	}
	if !b.options.Timestamps {
		at = 0
	}
	for _, l := range []struct {
		key    string
		number int64
	}{{"thread.id", s.ThreadID}, {"thread.os.id", s.ThreadOSID}, {labelTimestamp, at}} {
		if l.number > 0 {
			data = label(data, b.m.text(l.key), 0, l.number)
		}
	}
	return data
}

func (b *Builder) location(f Frame) uint64 {
	id, ok := b.locations[f]
	if !ok {
		id = uint64(len(b.locations) + 1)
		b.locations[f] = id
		function, line := b.function(Frame{Function: f.Function, File: f.File}), appendVarint(nil, lineLine, uint64(f.Line))
		line = appendVarint(line, lineFunction, function)
		b.m.field(profileLocation, func(data []byte) []byte {
			data = appendVarint(data, locationID, id)
			return protowire.AppendBytes(protowire.AppendTag(data, locationLine, protowire.BytesType), line)
		})
	}
	return id
}

func (b *Builder) function(f Frame) uint64 {
	id, ok := b.functions[f]
	if !ok {
		id = uint64(len(b.functions) + 1)
		b.functions[f] = id
		b.m.field(profileFunction, func(data []byte) []byte {
			data = appendVarint(data, functionID, id)
			data = appendVarint(data, functionName, b.m.text(f.Function))
			return appendVarint(data, functionFile, b.m.text(f.File))
		})
	}
	return id
}

// Finish returns the message. The Builder must not be used again.
func (b *Builder) Finish() []byte {
	for _, t := range b.types() {
		b.m.valueType(profileSampleType, t)
	}
	b.m.header(b.span, false)
	return b.m.finish()
}
