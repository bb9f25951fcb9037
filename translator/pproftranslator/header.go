// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// Bounds that are not worth a setting.
const (
	maxSampleTypes = 1024
	maxComments    = 64 << 10
)

// header is what the message says once; strings are pprof string indices.
type header struct {
	sampleTypes                                 []valueType
	comments                                    []uint64
	dropFrames, keepFrames, defaultType, docURL int64
	time, duration, period                      int64
	periodType                                  valueType
	// What is many: how much there is of it, and where.
	samples, mappings, functions, locations, strings span
	// What the strings take, in bytes.
	stringBytes int
}

// span is where the fields of one number are at the top level, from the first to
// behind the last, and how many there are. They mostly stand together.
type span struct{ count, start, stop int }

// add takes in a field that begins at start and ends where c is.
func (s *span) add(start int, c *wire.Cursor) {
	if s.count == 0 {
		s.start = start
	}
	s.count++
	s.stop = c.At
}

type valueType struct{ typ, unit int64 }

func readValueType(c *wire.Cursor) (v valueType) {
	for c.Next() {
		switch c.Field {
		case valueTypeType:
			v.typ = c.Int()
		case valueTypeUnit:
			v.unit = c.Int()
		}
	}
	return v
}

// readTop reads the header and where the strings are, and counts the rest.
func (d *decoder) readTop() error {
	d.strings = d.strings[:0]
	d.header = header{sampleTypes: d.header.sampleTypes[:0], comments: d.header.comments[:0]}
	h := &d.header
	c := wire.Cursor{Data: d.data, End: len(d.data)}
	for start := 0; c.Next(); start = c.At {
		switch c.Field {
		case profileSampleType:
			if len(h.sampleTypes) == maxSampleTypes {
				return &LimitError{What: "sample types", Limit: maxSampleTypes}
			}
			m := c.Message()
			h.sampleTypes = append(h.sampleTypes, readValueType(&m))
			if m.Err != nil {
				return fmt.Errorf("sample_type[%d]: %w", len(h.sampleTypes)-1, m.Err)
			}
		case profileSample:
			h.samples.add(start, &c)
			c.Message()
		case profileMapping:
			h.mappings.add(start, &c)
			c.Message()
		case profileLocation:
			h.locations.add(start, &c)
			c.Message()
		case profileFunction:
			h.functions.add(start, &c)
			c.Message()
		case profileString:
			h.strings.add(start, &c)
			if err := d.addString(&c); err != nil {
				return err
			}
		case profileDropFrames:
			h.dropFrames = c.Int()
		case profileKeepFrames:
			h.keepFrames = c.Int()
		case profileTimeNanos:
			if h.time != 0 {
				return errors.New("time_nanos is there twice: these are several profiles, one after the other")
			}
			h.time = c.Int()
		case profileDurationNanos:
			h.duration = c.Int()
		case profilePeriodType:
			m := c.Message()
			h.periodType = readValueType(&m)
			if m.Err != nil {
				return fmt.Errorf("period_type: %w", m.Err)
			}
		case profilePeriod:
			h.period = c.Int()
		case profileComment:
			if h.comments = c.AppendRepeated(h.comments, maxComments); len(h.comments) > maxComments {
				return &LimitError{What: "comments", Limit: maxComments}
			}
		case profileDefaultSampleType:
			h.defaultType = c.Int()
		case profileDocURL:
			h.docURL = c.Int()
		}
	}
	if c.Err != nil {
		return fmt.Errorf("byte %d, after %s: %w", c.At, profileField(c.Field), c.Err)
	}
	if h.samples.count > d.limits.Samples {
		return &LimitError{What: "samples", Limit: int64(d.limits.Samples), Got: int64(h.samples.count)}
	}
	d.stringIndices = zeroed(d.stringIndices, len(d.strings))
	d.label.roles = d.label.roles[:0]
	return nil
}

func (d *decoder) addString(c *wire.Cursor) error {
	if c.Message(); c.Err != nil {
		return fmt.Errorf("string_table[%d]: %w", len(d.strings), c.Err)
	}
	size := c.Stop - c.Start
	if len(d.strings) == 0 && size > 0 {
		return fmt.Errorf("string_table[0] is %.40q, not empty", d.data[c.Start:c.Stop])
	}
	if size > d.limits.StringLength {
		return &LimitError{
			What:  fmt.Sprintf("length in bytes of string_table[%d]", len(d.strings)),
			Limit: int64(d.limits.StringLength), Got: int64(size),
		}
	}
	if len(d.strings) == cap(d.strings) {
		d.strings = roomFor(d.strings, func() int { return d.count(profileString) })
	}
	d.strings = append(d.strings, position{uint32(c.Start), uint32(c.Stop)})
	d.header.stringBytes += size
	return nil
}

func (d *decoder) checkHeader() error {
	h := &d.header
	for i, t := range h.sampleTypes {
		if err := errors.Join(d.checkString(t.typ), d.checkString(t.unit)); err != nil {
			return fmt.Errorf("sample_type[%d]: %w", i, err)
		}
	}
	for i, c := range h.comments {
		if err := d.checkString(int64(c)); err != nil {
			return fmt.Errorf("comment[%d]: %w", i, err)
		}
	}
	for _, f := range []struct {
		name  string
		index int64
	}{
		{"drop_frames", h.dropFrames},
		{"keep_frames", h.keepFrames},
		{"default_sample_type", h.defaultType},
		{"doc_url", h.docURL},
		{"period_type.type", h.periodType.typ},
		{"period_type.unit", h.periodType.unit},
	} {
		if err := d.checkString(f.index); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	if len(h.sampleTypes) == 0 && h.samples.count > 0 {
		return fmt.Errorf("there are %d samples and no sample_type", h.samples.count)
	}
	return nil
}
