// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"errors"
	"fmt"
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
// It calls reserve with the bytes of memory that it takes in total, before it takes them.
// The result does not share memory with data. The error names the malformed field.
func Pprof(data []byte, o Options, reserve func(bytes int64) error) ([]byte, error) {
	c := &completion{data: data, options: o, reserve: reserve}
	if err := c.survey(); err != nil {
		return nil, err
	}
	return c.write()
}

// completion reads a message twice: for its strings, times and periods, and to write the
// result.
type completion struct {
	data    []byte
	options Options
	reserve func(int64) error

	texts    []place // of the strings
	time     uint64  // index of the string source.event.time, 0 if there is none; and so on
	period   uint64
	traceID  uint64
	spanID   uint64
	hasTypes bool
	hasTime  bool
	samples  int
	largest  int // size of the largest sample in bytes
	span     span
}

// place is where content is in the data.
type place struct{ start, stop uint32 }

const placeSize = 8

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
			if err := c.addText(fields.Bytes(), fields.Start, fields.Stop); err != nil {
				return err
			}
		}
	}
	if fields.Err != nil {
		return fmt.Errorf("byte %d: %w", fields.At, fields.Err)
	}
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

func (c *completion) addText(text []byte, start, stop int) error {
	if len(c.texts) == cap(c.texts) {
		if err := c.reserve(int64(3 * placeSize * max(len(c.texts), 64))); err != nil {
			return err
		}
		c.texts = append(make([]place, 0, 2*max(len(c.texts), 64)), c.texts...)
	}
	index := uint64(len(c.texts))
	c.texts = append(c.texts, place{uint32(start), uint32(stop)})
	switch string(text) {
	case LabelTime:
		c.time = index
	case LabelPeriod:
		c.period = index
	case labelTraceID:
		c.traceID = index
	case labelSpanID:
		c.spanID = index
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
			case key == c.time:
				s.time = number
			case key == c.period:
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

// Bytes that a sample grows by (values and a timestamp) and may take in addition (padded IDs,
// which are strings of their own), and bytes for all else.
const (
	sampleGrowth = 48
	paddedIDs    = 256
	headerGrowth = 1 << 10
)

func (c *completion) write() ([]byte, error) {
	size := len(c.data) + sampleGrowth*c.samples + headerGrowth
	if err := c.reserve(int64(size + 2*c.largest + placeSize*cap(c.texts) + paddedIDs*c.samples)); err != nil {
		return nil, err
	}
	m := &message{data: make([]byte, 0, size), first: max(len(c.texts), 1), strings: map[string]uint64{}}
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
	m.header(c.span, c.hasTime)
	return m.finish(), nil
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
			case key == c.time:
				if s.time = number; isNumber {
					continue
				}
			case key == c.period:
				if s.period = number; isNumber {
					continue
				}
			case key == c.traceID && text != 0:
				b = label(b, key, c.padded(m, text, 32), 0)
				continue
			case key == c.spanID && text != 0:
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
	p := c.texts[index]
	text := string(c.data[p.start:p.stop])
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
