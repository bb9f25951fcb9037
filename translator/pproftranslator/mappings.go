// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// mappings are few in an honest profile: what is kept is where they are.
type mappings struct {
	positions []position
	ids       idTable
	indices   []int32 // by number: the index in the tables plus one, 0 for not there yet
	entry     dictionary.Mapping
}

func (m *mappings) retained() int {
	return 8*cap(m.positions) + 4*cap(m.indices) + m.ids.retained()
}

type mappingMessage struct {
	id, start, limit, offset uint64
	filename, buildID        int64
	has                      [4]bool // functions, filenames, line numbers, inline frames
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
			m.has[c.Field-mappingHasFunctions] = c.Uint() != 0
		}
	}
	return m
}

// readMappings sees that each mapping is well formed, whether a sample reaches it
// or not.
func (d *decoder) readMappings() error {
	ms := &d.mappings
	ms.positions = emptied(ms.positions, d.header.mappings.count)
	ms.ids.reset(d.header.mappings.count)
	err := d.each(profileMapping, d.header.mappings, func(c *wire.Cursor) error {
		ms.positions = append(ms.positions, position{uint32(c.At), uint32(c.End)})
		m := readMapping(c)
		if c.Err != nil {
			return c.Err
		}
		if err := errors.Join(d.checkString(m.filename), d.checkString(m.buildID)); err != nil {
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

// mappingIndex is the index in the tables of the mapping with the given number,
// 0 for -1.
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
		key := attrBuildIDGNU
		if isGoBuildID(id) {
			key = attrBuildIDGo
		}
		d.value = d.value[:0].AppendString(id)
		to.Attributes = append(to.Attributes, d.tables.Attribute(d.tables.StringOf(key), 0, d.value))
	}
	for i, has := range m.has {
		if has {
			to.Attributes = append(to.Attributes, d.flag(attrMappingHas[i]))
		}
	}
	n := d.tables.Mapping(*to)
	d.mappings.indices[number] = n + 1
	return n
}
