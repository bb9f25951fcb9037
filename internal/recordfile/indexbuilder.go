// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"encoding/json"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"
)

// IndexMemory bounds the memory of several IndexBuilders together. It is safe for concurrent use.
type IndexMemory struct {
	limit int64
	used  atomic.Int64
}

// NewIndexMemory returns an IndexMemory of limit bytes.
func NewIndexMemory(limit int64) *IndexMemory { return &IndexMemory{limit: limit} }

func (m *IndexMemory) reserve(n int64) bool {
	if m.used.Add(n) > m.limit {
		m.used.Add(-n)
		return false
	}
	return true
}

// IndexBuilder collects the index of a file.
type IndexBuilder struct {
	memory   *IndexMemory
	ofTotals int64 // reserved for totals
	ofLines  int64 // reserved for lines
	none     bool  // there is no index
	noLines  bool  // there are no records

	places map[Key]int64 // in totals
	totals []Summary
	lines  []byte // of the records
}

// seriesSize is the memory of a total without its strings, with the growth of slice and map.
const seriesSize = 2 * int64(unsafe.Sizeof(Summary{})+unsafe.Sizeof(Key{})+16)

// NewIndexBuilder returns an IndexBuilder that takes from memory. Its owner calls Release.
func NewIndexBuilder(memory *IndexMemory) *IndexBuilder {
	return &IndexBuilder{memory: memory, places: map[Key]int64{}}
}

// Add adds the next record: where its bytes are, and its summaries. Those of one Key are of different minutes.
// Without summaries, the file gets no index.
func (b *IndexBuilder) Add(offset, length int64, summaries []Summary) {
	if len(summaries) == 0 {
		b.Release()
	}
	if b.none {
		return
	}
	start := len(b.lines)
	b.lines = appendNumbers(b.lines, offset, length)
	for i := range summaries {
		s := &summaries[i]
		place, known := b.places[s.Key]
		if known {
			b.totals[place].Add(s)
		} else {
			if !b.reserveTotal(s) {
				b.Release()
				return
			}
			place = int64(len(b.totals))
			own := *s // its strings may be part of the payload
			own.Service, own.Type = strings.Clone(s.Service), strings.Clone(s.Type)
			own.SampleType, own.Unit = strings.Clone(s.SampleType), strings.Clone(s.Unit)
			b.places[own.Key] = place
			b.totals = append(b.totals, own)
		}
		b.lines = append(b.lines, ' ')
		b.lines = appendNumbers(b.lines, place, int64(s.Start), int64(s.Latest-s.Start), int64(s.End-s.Start), int64(s.Profiles), int64(s.Samples), s.Sum)
	}
	b.lines = append(b.lines, lineFeed)
	size := 2 * int64(len(b.lines)-start) // with the growth of the slice
	if b.noLines || !b.memory.reserve(size) {
		b.dropLines()
		return
	}
	b.ofLines += size
}

func appendNumbers(line []byte, numbers ...int64) []byte {
	for i, n := range numbers {
		if i > 0 {
			line = append(line, ' ')
		}
		line = strconv.AppendInt(line, n, 10)
	}
	return line
}

// reserveTotal makes room for the total of a Key, if necessary that of the lines.
func (b *IndexBuilder) reserveTotal(s *Summary) bool {
	size := seriesSize + int64(len(s.Service)+len(s.Type)+len(s.SampleType)+len(s.Unit))
	if !b.memory.reserve(size) {
		b.dropLines()
		if !b.memory.reserve(size) {
			return false
		}
	}
	b.ofTotals += size
	return true
}

// dropLines releases the memory of the lines.
func (b *IndexBuilder) dropLines() {
	b.memory.used.Add(-b.ofLines)
	b.noLines, b.ofLines, b.lines = true, 0, nil
}

// Release releases the memory. There is no index then.
func (b *IndexBuilder) Release() {
	b.dropLines()
	b.memory.used.Add(-b.ofTotals)
	b.none, b.ofTotals, b.places, b.totals = true, 0, nil, nil
}

// Encode returns the index of a file of size bytes, or nil if there is none.
func (b *IndexBuilder) Encode(size int64) ([]byte, error) {
	if b.none || len(b.totals) == 0 {
		return nil, nil
	}
	var rest []byte
	for i := range b.totals {
		line, err := json.Marshal(&b.totals[i])
		if err != nil {
			return nil, err
		}
		rest = append(append(rest, line...), lineFeed)
	}
	rest = append(rest, b.lines...)
	head, err := json.Marshal(indexHead{indexVersion, size, crc32.Checksum(rest, castagnoli)})
	return slices.Concat(head, lineEnd, rest), err
}
