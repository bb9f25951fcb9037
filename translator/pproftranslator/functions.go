// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// functions are the functions of the payload.
type functions struct {
	entries []functionEntry
	ids     idTable
	indices []int32
}

// functionEntry has string indices of the payload.
type functionEntry struct {
	name, systemName, filename uint32
	startLine                  int64
}

// readFunctions reads all functions, including those that no sample reaches.
func (d *decoder) readFunctions() error {
	fs := &d.functions
	count := d.header.entries[profileFunction].count
	fs.entries = emptied(fs.entries, count)
	fs.ids.reset(count)
	err := d.each(profileFunction, func(c *wire.Cursor) error {
		var f [8]uint64
		c.Scalars(f[:])
		for c.Next() {
			switch c.Field {
			case functionID, functionName, functionSystemName, functionFilename, functionStartLine:
				f[c.Field] = c.Uint()
			}
		}
		if c.Err != nil {
			return c.Err
		}
		name, systemName, filename := f[functionName], f[functionSystemName], f[functionFilename]
		if n := uint64(len(d.strings)); name >= n || systemName >= n || filename >= n {
			return d.checkStrings(int64(name), int64(systemName), int64(filename))
		}
		fs.entries = append(fs.entries, functionEntry{uint32(name), uint32(systemName), uint32(filename), int64(f[functionStartLine])})
		return fs.ids.add(f[functionID])
	})
	fs.indices = zeroed(fs.indices, len(fs.entries))
	return err
}

// functionIndex returns the index of the function with the given number.
func (d *decoder) functionIndex(number int32) int32 {
	if n := d.functions.indices[number]; n != 0 {
		return n - 1
	}
	f := &d.functions.entries[number]
	n := d.tables.Function(dictionary.Function{
		Name:       d.stringIndex(int64(f.name)),
		SystemName: d.stringIndex(int64(f.systemName)),
		Filename:   d.stringIndex(int64(f.filename)),
		StartLine:  f.startLine,
	})
	d.functions.indices[number] = n + 1
	return n
}
