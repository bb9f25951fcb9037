// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"errors"
	"fmt"
	"slices"
)

// entryOf finds what an id leads to; id 0 is nothing.
func entryOf(parts map[uint64]identity, what string, id uint64) (identity, error) {
	found, ok := parts[id]
	if !ok && id != 0 {
		return identity{}, fmt.Errorf("%s id %d is that of none", what, id)
	}
	return found, nil
}

// readParts reads the entries of a table. read writes an entry to the hash and
// returns its id.
func readParts(b *viewBuilder, what string, entries [][]byte, read func(entry []byte) (id uint64, err error)) (map[uint64]identity, error) {
	parts := make(map[uint64]identity, len(entries))
	for i, entry := range entries {
		id, err := read(entry)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", what, i, err)
		}
		if _, twice := parts[id]; twice || id == 0 {
			return nil, fmt.Errorf("%s[%d]: id %d is 0 or there twice", what, i, id)
		}
		parts[id] = b.sum()
	}
	return parts, nil
}

// scalars reads the varint fields of a message, by number.
func scalars[T ~[]uint64](message []byte, into T) error {
	clear(into)
	for f, err := range wireFields(message) {
		if err != nil {
			return err
		}
		if int(f.number) < len(into) && f.bytes == nil {
			into[f.number] = f.varint
		}
	}
	return nil
}

func (b *viewBuilder) readMappings() (err error) {
	var fields [7]uint64
	named := map[uint64]bool{}
	b.mappings, err = readParts(b, "mapping", b.mappingFields, func(entry []byte) (uint64, error) {
		if err := scalars(entry, fields[:]); err != nil {
			return 0, err
		}
		// Not its end, which may grow, nor what is known about its symbols.
		b.writeNumber(fields[2])
		b.writeNumber(fields[4])
		named[fields[1]] = fields[5] != 0
		return fields[1], errors.Join(b.writeString(int64(fields[5])), b.writeString(int64(fields[6])))
	})
	for id, mapping := range b.mappings {
		if named[id] { // others come and go
			b.view.mappings = append(b.view.mappings, mapping)
		}
	}
	slices.SortFunc(b.view.mappings, identity.compare)
	return err
}

func (b *viewBuilder) readFunctions() (err error) {
	var fields [6]uint64
	b.functions, err = readParts(b, "function", b.functionFields, func(entry []byte) (uint64, error) {
		if err := scalars(entry, fields[:]); err != nil {
			return 0, err
		}
		b.writeNumber(fields[5])
		return fields[1], errors.Join(b.writeString(int64(fields[2])), b.writeString(int64(fields[3])), b.writeString(int64(fields[4])))
	})
	return err
}

func (b *viewBuilder) readLocations() (err error) {
	var fields [6]uint64
	var line [4]uint64
	b.locations, err = readParts(b, "location", b.locationFields, func(entry []byte) (uint64, error) {
		if err := scalars(entry, fields[:]); err != nil {
			return 0, err
		}
		mapping, err := entryOf(b.mappings, "mapping", fields[2])
		if err != nil {
			return 0, err
		}
		b.writeIdentity(mapping)
		b.writeNumber(fields[3])
		b.writeNumber(fields[5])
		lines := 0
		for f, err := range wireFields(entry) {
			if err != nil {
				return 0, err
			}
			if f.number != 4 {
				continue
			}
			if err := scalars(f.bytes, line[:]); err != nil {
				return 0, fmt.Errorf("line[%d]: %w", lines, err)
			}
			function, err := entryOf(b.functions, "function", line[1])
			if err != nil {
				return 0, fmt.Errorf("line[%d]: %w", lines, err)
			}
			b.writeIdentity(function)
			b.writeNumber(line[2])
			b.writeNumber(line[3])
			lines++
		}
		return fields[1], nil
	})
	return err
}
