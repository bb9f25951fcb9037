// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"crypto/sha256"
	"fmt"
	"hash"

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
