// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// Options describe the content of a body.
type Options struct {
	// Wall means that each sample stands for its source.event.period of wall time if the
	// body has no values.
	Wall bool
	// Timestamps keeps the time of each sample.
	Timestamps bool
}

// Pprof completes a pprof message, decompressed. Of a message without sample types, each
// sample gets the value 1, samples/count, and with Options.Wall and a period also its
// period, wall/nanoseconds.
//
// It calls reserve once, with the bytes of memory that it takes, before it takes them.
// The result does not share memory with data. The error names the malformed field.
func Pprof(data []byte, o Options, reserve func(bytes int64) error) ([]byte, error) {
	c := &completion{data: data, options: o}
	if err := c.survey(); err != nil {
		return nil, err
	}
	if err := reserve(c.memory()); err != nil {
		return nil, err
	}
	c.readStrings()
	if err := c.readSpan(); err != nil {
		return nil, err
	}
	return c.write(), nil
}

// keyNames are the keys of labels that are read or completed.
var keyNames = [...]string{keyTime: LabelTime, keyPeriod: LabelPeriod, keyTraceID: labelTraceID, keySpanID: labelSpanID}

const (
	keyTime = iota
	keyPeriod
	keyTraceID
	keySpanID
)

// completion reads a message three times: to know its size, for the times and periods of its samples, and to write
// the result.
type completion struct {
	data    []byte
	options Options

	texts    [][]byte              // the strings, parts of data
	keys     [len(keyNames)]uint64 // indexes of the strings that are keys; 0 if there is none
	hasTypes bool
	hasTime  bool
	samples  int
	strings  int
	largest  int // size of the largest sample in bytes
	span     span
}

// survey counts, and finds out what the message has.
func (c *completion) survey() error {
	fields := wire.New(c.data)
	for fields.Next() {
		switch fields.Field {
		case profileSampleType:
			c.hasTypes = true
		case profileSample:
			c.samples++
			c.largest = max(c.largest, fields.Stop-fields.Start)
		case profileTime:
			c.hasTime = fields.Int() > 0
		case profileString:
			c.strings++
		}
	}
	if fields.Err != nil {
		return fmt.Errorf("byte %d: %w", fields.At, fields.Err)
	}
	return nil
}

// Bytes that a string and a sample take: the sample grows by values and a timestamp, and may have padded IDs, which
// are strings of their own. And bytes for all else.
const (
	stringSize   = 24
	sampleGrowth = 48
	paddedIDs    = 256
	headerGrowth = 1 << 10
)

// size is that of the result in bytes, at most, and memory what it takes to make it.
func (c *completion) size() int { return len(c.data) + sampleGrowth*c.samples + headerGrowth }

func (c *completion) memory() int64 {
	return int64(c.size() + 2*c.largest + stringSize*c.strings + paddedIDs*c.samples)
}

// readStrings reads the strings, and finds the keys of labels.
func (c *completion) readStrings() {
	c.texts = make([][]byte, 0, c.strings)
	for fields := wire.New(c.data); fields.Next(); {
		if fields.Field == profileString {
			if key := slices.Index(keyNames[:], string(fields.Bytes())); key >= 0 {
				c.keys[key] = uint64(len(c.texts))
			}
			c.texts = append(c.texts, fields.Bytes())
		}
	}
}

// readSpan checks the samples, and reads their times and periods.
func (c *completion) readSpan() error {
	fields, number := wire.New(c.data), 0
	for fields.Next() {
		if fields.Field == profileSample {
			s, err := c.read(fields.Message())
			if err != nil {
				return fmt.Errorf("sample %d: %w", number, err)
			}
			c.span.add(nanoseconds(s.time), nanoseconds(s.period))
			number++
		}
	}
	return nil
}

// sample has the data of a sample's labels, in milliseconds; 0 is unknown.
type sample struct {
	time, period int64
	values       int
}

// read returns the data in the labels of a sample.
func (c *completion) read(fields wire.Cursor) (s sample, err error) {
	for fields.Next() {
		switch fields.Field {
		case sampleValue:
			s.values++
		case sampleLabel:
			m := fields.Message()
			key, _, number := readLabel(&m)
			switch {
			case m.Err != nil:
				return s, fmt.Errorf("label: %w", m.Err)
			case key == 0:
			case key == c.keys[keyTime]:
				s.time = number
			case key == c.keys[keyPeriod]:
				s.period = number
			}
		}
	}
	if fields.Err == nil && s.values > 0 && !c.hasTypes {
		return s, errors.New("has values, but the message has no sample types")
	}
	return s, fields.Err
}

func readLabel(fields *wire.Cursor) (key, text uint64, number int64) {
	for fields.Next() {
		switch fields.Field {
		case labelKey:
			key = fields.Uint()
		case labelString:
			text = fields.Uint()
		case labelNumber:
			number = fields.Int()
		}
	}
	return key, text, number
}

func (c *completion) write() []byte {
	m := &message{data: make([]byte, 0, c.size()), first: max(len(c.texts), 1), strings: map[string]uint64{}}
	if len(c.texts) == 0 {
		m.data = protowire.AppendBytes(protowire.AppendTag(m.data, profileString, protowire.BytesType), nil)
	}
	for fields := wire.New(c.data); ; {
		start := fields.At
		if !fields.Next() {
			break
		}
		if fields.Field == profileSample {
			m.field(profileSample, func(b []byte) []byte { return c.sample(m, b, fields.Message()) })
		} else {
			m.data = append(m.data, c.data[start:fields.At]...)
		}
	}
	if !c.hasTypes {
		m.valueType(profileSampleType, samplesCount)
		if c.wall() {
			m.valueType(profileSampleType, wallNanoseconds)
		}
	}
	if c.span.first > 0 && !c.hasTime {
		m.varint(profileTime, c.span.first)
		m.varint(profileDuration, c.span.length())
	}
	if period := c.span.commonPeriod(); period > 0 {
		m.valueType(profilePeriodType, wallNanoseconds)
		m.varint(profilePeriod, period)
	}
	return m.finish()
}

// wall reports whether samples get wall time.
func (c *completion) wall() bool { return c.options.Wall && !c.hasTypes && c.span.period > 0 }

// sample appends a sample of the message with its values and labels completed.
func (c *completion) sample(m *message, b []byte, fields wire.Cursor) []byte {
	var s sample
	for start := fields.At; fields.Next(); start = fields.At {
		if fields.Field == sampleLabel {
			inner := fields.Message()
			key, text, number := readLabel(&inner)
			isNumber := number != 0 || text == 0
			switch {
			case key == 0:
			case key == c.keys[keyTime]:
				if s.time = number; isNumber {
					continue
				}
			case key == c.keys[keyPeriod]:
				if s.period = number; isNumber {
					continue
				}
			case key == c.keys[keyTraceID] && text != 0:
				b = label(b, key, c.padded(m, text, 32), 0)
				continue
			case key == c.keys[keySpanID] && text != 0:
				b = label(b, key, c.padded(m, text, 16), 0)
				continue
			}
		}
		b = append(b, c.data[start:fields.At]...)
	}
	if !c.hasTypes {
		b = appendVarint(b, sampleValue, 1)
		if c.wall() {
			b = appendVarint(b, sampleValue, uint64(nanoseconds(s.period)))
		}
	}
	if at := nanoseconds(s.time); at > 0 && c.options.Timestamps {
		b = label(b, m.text(labelTimestamp), 0, at)
	}
	return b
}

// padded returns the string of an ID of so many hexadecimal digits. Other strings are
// returned as they are.
func (c *completion) padded(m *message, index uint64, digits int) uint64 {
	if index >= uint64(len(c.texts)) {
		return index
	}
	text := string(c.texts[index])
	if id := padID(text, digits); id != text {
		return m.text(id)
	}
	return index
}

// padID adds the leading zeros that a hexadecimal ID lacks. Python's agent prints at least half
// of the digits.
func padID(id string, digits int) string {
	if len(id) < digits/2 || len(id) >= digits || strings.Trim(id, "0123456789abcdef") != "" {
		return id
	}
	return strings.Repeat("0", digits-len(id)) + id
}
