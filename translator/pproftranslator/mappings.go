// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
)

// mappings are few, except in a malicious profile. A sample that reaches one reads it
// again at its position.
type mappings struct {
	positions []position
	ids       idTable
	indices   []int32
	entry     dictionary.Mapping
}

type mappingMessage struct {
	id, start, limit, offset uint64
	filename, buildID        int64
	flags                    [len(semconv.MappingFlags)]bool
}

func readMapping(c *wire.Cursor) (m mappingMessage) {
	for c.Next() {
		switch c.Field {
		case mappingID:
			m.id = c.Uint()
		case mappingMemoryStart:
			m.start = c.Uint()
		case mappingMemoryLimit:
			m.limit = c.Uint()
		case mappingFileOffset:
			m.offset = c.Uint()
		case mappingFilename:
			m.filename = c.Int()
		case mappingBuildID:
			m.buildID = c.Int()
		case mappingHasFunctions, mappingHasFilenames, mappingHasLineNumbers, mappingHasInlineFrames:
			m.flags[c.Field-mappingHasFunctions] = c.Uint() != 0
		}
	}
	return m
}

// readMappings checks all mappings, including those that no sample reaches.
func (d *decoder) readMappings() error {
	ms := &d.mappings
	count := d.header.entries[profileMapping].count
	ms.positions = emptied(ms.positions, count)
	ms.ids.reset(count)
	err := d.each(profileMapping, func(c *wire.Cursor) error {
		ms.positions = append(ms.positions, position{uint32(c.At), uint32(c.End)})
		m := readMapping(c)
		if c.Err != nil {
			return c.Err
		}
		if err := d.checkStrings(m.filename, m.buildID); err != nil {
			return err
		}
		return ms.ids.add(m.id)
	})
	ms.indices = zeroed(ms.indices, len(ms.positions))
	return err
}

func (d *decoder) mapping(number int32) mappingMessage {
	p := d.mappings.positions[number]
	return readMapping(&wire.Cursor{Data: d.data, At: int(p.start), End: int(p.stop)})
}

// mappingIndex returns the index of the mapping with the given number, 0 for -1.
func (d *decoder) mappingIndex(number int32) int32 {
	if number < 0 {
		return 0
	}
	if n := d.mappings.indices[number]; n != 0 {
		return n - 1
	}
	m := d.mapping(number)
	to := &d.mappings.entry
	*to = dictionary.Mapping{
		MemoryStart: m.start, MemoryLimit: m.limit, FileOffset: m.offset,
		Filename:   d.stringIndex(m.filename),
		Attributes: to.Attributes[:0],
	}
	if id := d.tables.Valid(d.bytes(m.buildID)); len(id) > 0 {
		key := semconv.BuildIDGNU
		if semconv.IsGoBuildID(id) {
			key = semconv.BuildIDGo
		}
		to.Attributes = append(to.Attributes, d.stringAttribute(key, id))
	}
	for i, set := range m.flags {
		if set {
			to.Attributes = append(to.Attributes, d.flag(semconv.MappingFlags[i]))
		}
	}
	n := d.tables.Mapping(*to)
	d.mappings.indices[number] = n + 1
	return n
}
