// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/google/pprof/profile"
	"google.golang.org/protobuf/encoding/protowire"
)

// Labels and attributes that Splunk's agents set.
const (
	LabelTime    = "source.event.time"   // milliseconds since 1970
	LabelPeriod  = "source.event.period" // milliseconds
	LabelEvent   = "source.event.name"
	labelTraceID = "trace_id"
	labelSpanID  = "span_id"
)

// labelTimestamp is pproftranslator's default for the time of a sample in nanoseconds.
const labelTimestamp = "end_timestamp_ns"

const nanosecondsPerMillisecond int64 = 1_000_000

// nanoseconds converts milliseconds, which are 0 if they are out of range.
func nanoseconds(milliseconds int64) int64 {
	if milliseconds <= 0 || milliseconds > math.MaxInt64/nanosecondsPerMillisecond {
		return 0
	}
	return milliseconds * nanosecondsPerMillisecond
}

// Fields of pprof's messages, from
// https://github.com/google/pprof/blob/main/proto/profile.proto.
const (
	profileSampleType = 1
	profileSample     = 2
	profileString     = 6
	profileTime       = 9
	profileDuration   = 10
	profilePeriodType = 11
	profilePeriod     = 12

	valueTypeType = 1
	valueTypeUnit = 2

	sampleValue = 2
	sampleLabel = 3

	labelKey    = 1
	labelString = 2
	labelNumber = 3
)

// message is a pprof message under construction. Its strings follow those that it has
// already.
type message struct {
	data    []byte
	scratch []byte
	first   int // number of strings that the message had
	strings map[string]uint64
	added   []string
}

// text returns the index of a string.
func (m *message) text(s string) uint64 {
	if s == "" {
		return 0
	}
	index, ok := m.strings[s]
	if !ok {
		index = uint64(m.first + len(m.added))
		m.strings[s], m.added = index, append(m.added, s)
	}
	return index
}

// field appends a message field whose content write appends.
func (m *message) field(number protowire.Number, write func(b []byte) []byte) {
	m.scratch = write(m.scratch[:0])
	m.data = protowire.AppendTag(m.data, number, protowire.BytesType)
	m.data = protowire.AppendBytes(m.data, m.scratch)
}

func (m *message) varint(number protowire.Number, v int64) {
	m.data = appendVarint(m.data, number, uint64(v))
}

func (m *message) valueType(number protowire.Number, t profile.ValueType) {
	m.field(number, func(b []byte) []byte {
		b = appendVarint(b, valueTypeType, m.text(t.Type))
		return appendVarint(b, valueTypeUnit, m.text(t.Unit))
	})
}

// finish appends the strings and returns the message.
func (m *message) finish() []byte {
	for _, s := range m.added {
		m.data = protowire.AppendTag(m.data, profileString, protowire.BytesType)
		m.data = protowire.AppendString(m.data, s)
	}
	return m.data
}

func appendVarint(b []byte, number protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

// label appends a label to a sample. Exactly one of text and number is not 0.
func label(b []byte, key, text uint64, number int64) []byte {
	content := appendVarint(make([]byte, 0, 2+2*binary.MaxVarintLen64), labelKey, key)
	if text != 0 {
		content = appendVarint(content, labelString, text)
	} else {
		content = appendVarint(content, labelNumber, uint64(number))
	}
	return protowire.AppendBytes(protowire.AppendTag(b, sampleLabel, protowire.BytesType), content)
}

// Sample types that stand for the values that a body lacks.
var (
	samplesCount    = profile.ValueType{Type: "samples", Unit: "count"}
	wallNanoseconds = profile.ValueType{Type: "wall", Unit: "nanoseconds"}
	allocationBytes = profile.ValueType{Type: "allocationSize", Unit: "bytes"}
)

// span is the time of samples, and their period, in nanoseconds; 0 is unknown.
type span struct {
	first, last int64
	period      int64 // the largest
	varies      bool  // not all have the same period
	samples     int
}

func (s *span) add(at, period int64) {
	if at > 0 {
		if s.first == 0 || at < s.first {
			s.first = at
		}
		s.last = max(s.last, at)
	}
	s.varies = s.varies || s.samples > 0 && period != s.period
	s.period = max(s.period, period)
	s.samples++
}

// length is the duration of the profile. A sample stands for the time from one sample to the next, so it has one
// period more than the samples are apart; without a period it ends with the millisecond in which the last sample was
// taken.
func (s *span) length() int64 {
	length := cmp.Or(s.period, nanosecondsPerMillisecond)
	switch {
	case s.first == 0:
		return 0
	case length <= math.MaxInt64-(s.last-s.first):
		length += s.last - s.first
	}
	return length
}

// commonPeriod is the period that all samples have, or 0.
func (s *span) commonPeriod() int64 {
	if s.varies {
		return 0
	}
	return s.period
}
