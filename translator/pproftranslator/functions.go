// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// functions are the functions of the payload by number: their place in it.
type functions struct {
	entries []functionEntry
	ids     idTable
	indices []int32 // by number: the index in the tables plus one, 0 for not there yet
}

// functionEntry has pprof string indices.
type functionEntry struct {
	name, systemName, filename uint32
	startLine                  int64
}

func (f *functions) retained() int {
	return 24*cap(f.entries) + 4*cap(f.indices) + f.ids.retained()
}

// readFunctions reads all functions, whether a sample reaches them or not.
func (d *decoder) readFunctions() error {
	fs := &d.functions
	fs.entries = emptied(fs.entries, d.header.functions.count)
	fs.ids.reset(d.header.functions.count)
	err := d.each(profileFunction, d.header.functions, func(c *wire.Cursor) error {
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
			return errors.Join(d.checkString(int64(name)), d.checkString(int64(systemName)), d.checkString(int64(filename)))
		}
		fs.entries = append(fs.entries, functionEntry{uint32(name), uint32(systemName), uint32(filename), int64(f[functionStartLine])})
		return fs.ids.add(f[functionID])
	})
	fs.indices = zeroed(fs.indices, len(fs.entries))
	return err
}

// functionIndex is the index in the tables of the function with the given number.
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
