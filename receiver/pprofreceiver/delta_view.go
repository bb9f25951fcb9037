// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Bounds of a profile that differences are taken of. An honest one meets none.
const (
	// maxViewEntries is the number of strings, and that of mappings, functions,
	// locations and samples together.
	maxViewEntries = 1 << 20

	// maxViewDepth is the number of locations, and of lines and labels, of one
	// entry.
	maxViewDepth = 64 << 10
)

// identity tells stacks with their labels apart, by all that they consist of: the
// first 16 bytes of a SHA-256, in which the hashes of the parts are. The zero
// value is that of a part which is not there.
type identity struct{ high, low uint64 }

func (a identity) compare(b identity) int {
	return cmp.Or(cmp.Compare(a.high, b.high), cmp.Compare(a.low, b.low))
}

// pprofView is what has to be known of a pprof to take its difference from an
// earlier one of the same process.
type pprofView struct {
	payload     []byte
	sampleTypes []string
	time        int64 // nanoseconds since 1970, by the target's clock; 0 is unknown

	samples []identity
	values  []int64 // of each sample, one for each sample type

	// mappings says where which files are loaded, sorted. It differs between
	// processes where addresses are random.
	mappings []identity
}

// viewBuilder reads a pprof.
type viewBuilder struct {
	view    pprofView
	entries int
	types   []int64 // string indices of the sample types

	strings                                       [][2]uint32 // begin and end in the payload
	mappingFields, functionFields, locationFields [][]byte
	sampleFields                                  [][]byte
	mappings, functions, locations                map[uint64]identity
	hash                                          hash.Hash
	number                                        [8]byte
	text                                          []byte
	numbers                                       []uint64
	labels                                        []viewedLabel
}

// viewedLabel is a value of a label; key is that of its name and kind.
type viewedLabel struct{ key, whole identity }

// viewPprof reads an uncompressed pprof. It checks what it needs: that all indices
// and ids lead somewhere, and that each sample has its values.
func viewPprof(payload []byte) (*pprofView, error) {
	b := viewBuilder{view: pprofView{payload: payload}, hash: sha256.New()}
	for _, step := range []func() error{b.readTop, b.readMappings, b.readFunctions, b.readLocations, b.readSamples} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("pprof: %w", err)
		}
	}
	return &b.view, nil
}

func (b *viewBuilder) count() error {
	if b.entries++; b.entries > maxViewEntries {
		return &pproftranslator.LimitError{What: "entries of a profile to take differences of", Limit: maxViewEntries}
	}
	return nil
}

func (b *viewBuilder) readTop() error {
	at := 0
	for f, err := range wireFields(b.view.payload) {
		if err != nil {
			return fmt.Errorf("byte %d: %w", at, err)
		}
		end := at + len(f.raw)
		var to *[][]byte
		switch f.number {
		case pprofString:
			if len(b.strings) == maxViewEntries {
				return &pproftranslator.LimitError{What: "strings of a profile to take differences of", Limit: maxViewEntries}
			}
			b.strings = append(b.strings, [2]uint32{uint32(end - len(f.bytes)), uint32(end)})
		case pprofSampleType:
			if len(b.types) == maxViewDepth {
				return &pproftranslator.LimitError{What: "sample types", Limit: maxViewDepth}
			}
			var index int64
			for part, err := range wireFields(f.bytes) {
				if err != nil {
					return fmt.Errorf("sample_type[%d]: %w", len(b.types), err)
				}
				if part.number == 1 {
					index = part.int()
				}
			}
			b.types = append(b.types, index)
		case pprofTimeNanos:
			b.view.time = max(f.int(), 0)
		case pprofSample:
			to = &b.sampleFields
		case pprofMapping:
			to = &b.mappingFields
		case pprofLocation:
			to = &b.locationFields
		case pprofFunction:
			to = &b.functionFields
		}
		if to != nil {
			if err := b.count(); err != nil {
				return err
			}
			*to = append(*to, f.bytes)
		}
		at = end
	}
	for i, index := range b.types {
		name, err := b.stringAt(index)
		if err != nil {
			return fmt.Errorf("sample_type[%d]: %w", i, err)
		}
		b.view.sampleTypes = append(b.view.sampleTypes, string(name))
	}
	return nil
}

func (b *viewBuilder) stringAt(index int64) ([]byte, error) {
	if index == 0 {
		return nil, nil
	}
	if index < 0 || index >= int64(len(b.strings)) {
		return nil, fmt.Errorf("string index %d is not in string_table, which has %d entries", index, len(b.strings))
	}
	at := b.strings[index]
	return b.view.payload[at[0]:at[1]], nil
}

// The write methods add to the hash, each part so that it cannot run into the
// next one.

func (b *viewBuilder) writeNumber(n uint64) {
	binary.BigEndian.PutUint64(b.number[:], n)
	b.hash.Write(b.number[:])
}

func (b *viewBuilder) writeIdentity(id identity) {
	b.writeNumber(id.high)
	b.writeNumber(id.low)
}

func (b *viewBuilder) writeString(index int64) error {
	s, err := b.stringAt(index)
	if err != nil {
		return err
	}
	b.writeNumber(uint64(len(s)))
	b.hash.Write(s)
	return nil
}

// sum takes the identity of what has been written, and begins anew.
func (b *viewBuilder) sum() identity {
	b.text = b.hash.Sum(b.text[:0])
	b.hash.Reset()
	return identity{binary.BigEndian.Uint64(b.text), binary.BigEndian.Uint64(b.text[8:])}
}

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

func (b *viewBuilder) readSamples() error {
	types := len(b.types)
	b.view.samples = make([]identity, 0, len(b.sampleFields))
	for i, sample := range b.sampleFields {
		id, err := b.readSample(sample)
		if err != nil {
			return fmt.Errorf("sample[%d]: %w", i, err)
		}
		b.view.samples = append(b.view.samples, id)
		if got := len(b.view.values); got != (i+1)*types {
			return fmt.Errorf("sample[%d]: it has %d values for %d sample types", i, got-i*types, types)
		}
	}
	return nil
}

func (b *viewBuilder) readSample(sample []byte) (identity, error) {
	b.labels = b.labels[:0]
	b.numbers = b.numbers[:0]
	var err error
	for f, ferr := range wireFields(sample) {
		if ferr != nil {
			return identity{}, ferr
		}
		switch f.number {
		case 1:
			b.numbers, err = f.appendRepeated(b.numbers, maxViewDepth)
		case 3:
			err = b.readLabel(f.bytes)
		}
		if err != nil {
			return identity{}, err
		}
	}
	stack := len(b.numbers)
	b.writeNumber(uint64(stack))
	for _, id := range b.numbers {
		location, err := entryOf(b.locations, "location", id)
		if err != nil {
			return identity{}, err
		}
		b.writeIdentity(location)
	}
	// Labels are a set, but the values of one keep their order.
	slices.SortStableFunc(b.labels, func(a, b viewedLabel) int { return a.key.compare(b.key) })
	for _, label := range b.labels {
		b.writeIdentity(label.whole)
	}
	id := b.sum()

	b.numbers = b.numbers[:0]
	for f := range knownFields(sample) {
		if f.number == 2 {
			if b.numbers, err = f.appendRepeated(b.numbers, len(b.types)); err != nil {
				return identity{}, err
			}
		}
	}
	for _, value := range b.numbers {
		b.view.values = append(b.view.values, int64(value))
	}
	return id, nil
}

func (b *viewBuilder) readLabel(label []byte) error {
	var fields [5]uint64
	if err := scalars(label, fields[:]); err != nil {
		return err
	}
	if len(b.labels) == maxViewDepth {
		return &pproftranslator.LimitError{What: "labels", Limit: maxViewDepth}
	}
	if err := b.writeString(int64(fields[1])); err != nil {
		return err
	}
	if fields[2] != 0 { // a string, not a number
		b.writeNumber(1)
	}
	viewed := viewedLabel{key: b.sum()}
	b.writeIdentity(viewed.key)
	if err := errors.Join(b.writeString(int64(fields[2])), b.writeString(int64(fields[4]))); err != nil {
		return err
	}
	b.writeNumber(fields[3])
	viewed.whole = b.sum()
	b.labels = append(b.labels, viewed)
	return nil
}
