// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Limits that are not worth a setting.
const (
	maxSampleTypes = 1024
	maxComments    = 64 << 10
)

// header holds the fields of the Profile message that are few, and the places of the
// others. Strings are indices into string_table.
type header struct {
	sampleTypes []valueType
	periodType  valueType
	comments    []uint64
	integers    [profileDocURL + 1]uint64   // by field
	entries     [profileDocURL + 1]wire.Run // by field: those of entryFields
}

// entryFields has the bits of the fields that have many values.
const entryFields = 1<<profileSample | 1<<profileMapping | 1<<profileLocation | 1<<profileFunction | 1<<profileString

type valueType struct{ typ, unit uint64 }

func readValueType(c *wire.Cursor) valueType {
	var f [valueTypeUnit + 1]uint64
	readVarints(c, f[:])
	return valueType{f[valueTypeType], f[valueTypeUnit]}
}

// readHeader reads the header and counts the entries.
func (p *payload) readHeader() error {
	p.header = header{sampleTypes: p.header.sampleTypes[:0], comments: p.header.comments[:0]}
	c, start := wire.New(p.data), 0
	for c.Err == nil {
		c.SkipRuns(entryFields, &p.header.entries)
		if start = c.At; !c.Next() {
			break
		}
		if entryFields>>c.Field&1 != 0 {
			p.header.entries[c.Field].Add(start, c.At)
			c.WantMessage()
		} else if err := p.header.readField(&c); err != nil {
			return err
		}
	}
	if c.Err != nil && start == 0 {
		return fmt.Errorf("starts with %.20q; want a pprof profile, which is protobuf", p.data)
	}
	if c.Err != nil {
		return fmt.Errorf("damaged, or not a pprof profile: byte %d, after %s: %w", c.At, profileField(c.Field), c.Err)
	}
	if n, limit := p.header.entries[profileSample].Count, p.limits.scaled(maxSamples); n > limit {
		return &LimitError{What: "samples", Limit: int64(limit), Got: int64(n)}
	}
	return nil
}

// readField reads the current field of c, which has few values.
func (h *header) readField(c *wire.Cursor) error {
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
	case profilePeriodType:
		m := c.Message()
		h.periodType = readValueType(&m)
		if m.Err != nil {
			return fmt.Errorf("period_type: %w", m.Err)
		}
	case profileTimeNanos:
		if h.integers[profileTimeNanos] != 0 {
			return errors.New("duplicate time_nanos: body seems to contain several concatenated profiles; send one per request")
		}
		h.integers[profileTimeNanos] = c.Uint()
	case profileComment:
		if h.comments = c.AppendRepeated(h.comments, maxComments); len(h.comments) > maxComments {
			return &LimitError{What: "comments", Limit: maxComments}
		}
	case profileDropFrames, profileKeepFrames, profileDurationNanos, profilePeriod, profileDefaultSampleType, profileDocURL:
		h.integers[c.Field] = c.Uint()
	}
	return nil
}

func (p *payload) readStrings() error {
	p.strings = emptied(p.strings, p.header.entries[profileString].Count)
	limit := p.limits.scaled(maxStringLength)
	return p.each(profileString, func(c *wire.Cursor) error {
		size := c.End - c.At
		if len(p.strings) == 0 && size > 0 {
			return fmt.Errorf("first string is %.40q, must be empty", c.Data[c.At:c.End])
		}
		if size > limit {
			return &LimitError{What: "length in bytes", Limit: int64(limit), Got: int64(size)}
		}
		p.strings = append(p.strings, position{uint32(c.At), uint32(c.End)})
		return nil
	})
}

// checkHeader checks the header after the strings have been read.
func (p *payload) checkHeader() error {
	h := &p.header
	for i, t := range h.sampleTypes {
		if err := p.checkStrings(t.typ, t.unit); err != nil {
			return fmt.Errorf("sample_type[%d]: %w", i, err)
		}
	}
	if err := p.checkStrings(h.periodType.typ, h.periodType.unit); err != nil {
		return fmt.Errorf("period_type: %w", err)
	}
	for i, c := range h.comments {
		if err := p.checkStrings(c); err != nil {
			return fmt.Errorf("comment[%d]: %w", i, err)
		}
	}
	for _, field := range []int{profileDropFrames, profileKeepFrames, profileDefaultSampleType, profileDocURL} {
		if err := p.checkStrings(h.integers[field]); err != nil {
			return fmt.Errorf("%s: %w", profileFields[field], err)
		}
	}
	if n := h.entries[profileSample].Count; len(h.sampleTypes) == 0 && n > 0 {
		return fmt.Errorf("there are %d samples and no sample_type", n)
	}
	return nil
}
