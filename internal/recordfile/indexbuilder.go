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

// indexVersion is that of the format of indexes.
const indexVersion = 2

// Memory bounds the memory of several IndexBuilders together. It is safe for concurrent use.
type IndexMemory struct {
	limit int64
	used  atomic.Int64
}

// NewMemory returns a Memory of limit bytes.
func NewIndexMemory(limit int64) *IndexMemory { return &IndexMemory{limit: limit} }

// Used returns the number of bytes held.
func (m *IndexMemory) Used() int64 { return m.used.Load() }

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
	reserved int64 // for totals
	ofLines  int64 // reserved for records and entries
	none     bool  // there is no index
	noLines  bool  // there are no records

	places  map[Key]int32 // in totals
	totals  []Summary
	records []recordPlace
	entries []indexEntry // of all records
}

// head is the first line of an index, and totals the second one.
type (
	indexHead struct {
		Version  int    `json:"version"`
		Size     int64  `json:"size"`
		Checksum uint32 `json:"checksum"`
	}
	indexTotals struct {
		Series []Summary `json:"series"`
	}
)

// recordPlace says where a record and its entries are.
type recordPlace struct {
	offset, length int64
	entries        int // number of its entries
}

// entry is a summary of a record.
type indexEntry struct {
	series int32 // place in totals
	Total
}

// Memory of an element, with the growth of its slice or map.
const (
	seriesSize = 2 * int64(unsafe.Sizeof(Summary{})+unsafe.Sizeof(Key{})+16)
	entrySize  = 2 * int64(unsafe.Sizeof(indexEntry{}))
	recordSize = 2 * int64(unsafe.Sizeof(recordPlace{}))
)

// NewBuilder returns a IndexBuilder that takes from memory. Its owner calls Release.
func NewIndexBuilder(memory *IndexMemory) *IndexBuilder {
	return &IndexBuilder{memory: memory, places: map[Key]int32{}}
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
	if size := recordSize + int64(len(summaries))*entrySize; !b.noLines && b.memory.reserve(size) {
		b.ofLines += size
		b.records = append(b.records, recordPlace{offset, length, len(summaries)})
	} else {
		b.dropLines()
	}
	for i := range summaries {
		s := &summaries[i]
		place, known := b.places[s.Key]
		switch {
		case known:
			b.totals[place].Add(s)
		case !b.reserveSeries(s):
			b.Release()
			return
		default:
			place = int32(len(b.totals))
			own := *s // its strings may be part of the payload
			own.Service, own.Type = strings.Clone(s.Service), strings.Clone(s.Type)
			own.SampleType, own.Unit = strings.Clone(s.SampleType), strings.Clone(s.Unit)
			b.places[own.Key] = place
			b.totals = append(b.totals, own)
		}
		if !b.noLines {
			b.entries = append(b.entries, indexEntry{place, s.Total})
		}
	}
}

// reserveSeries makes room for the total of a Key, if necessary that of the lines.
func (b *IndexBuilder) reserveSeries(s *Summary) bool {
	size := seriesSize + int64(len(s.Service)+len(s.Type)+len(s.SampleType)+len(s.Unit))
	if !b.memory.reserve(size) {
		b.dropLines()
		if !b.memory.reserve(size) {
			return false
		}
	}
	b.reserved += size
	return true
}

// dropLines releases the memory of the lines.
func (b *IndexBuilder) dropLines() {
	b.memory.used.Add(-b.ofLines)
	b.noLines, b.ofLines, b.records, b.entries = true, 0, nil, nil
}

// Release releases the memory. There is no index then.
func (b *IndexBuilder) Release() {
	b.dropLines()
	b.memory.used.Add(-b.reserved)
	b.none, b.reserved, b.places, b.totals = true, 0, nil, nil
}

// Encode returns the index of a file of size bytes, or nil if there is none.
func (b *IndexBuilder) Encode(size int64) ([]byte, error) {
	if b.none || len(b.totals) == 0 {
		return nil, nil
	}
	rest, err := json.Marshal(indexTotals{b.totals})
	if err != nil {
		return nil, err
	}
	rest = append(rest, '\n')
	at := 0
	for _, r := range b.records {
		rest = strconv.AppendInt(append(rest, `{"offset":`...), r.offset, 10)
		rest = strconv.AppendInt(append(rest, `,"length":`...), r.length, 10)
		rest = append(rest, `,"series":[`...)
		for i := range b.entries[at : at+r.entries] {
			if i > 0 {
				rest = append(rest, ',')
			}
			rest = b.entries[at+i].append(rest)
		}
		at += r.entries
		rest = append(rest, "]}\n"...)
	}
	first, err := json.Marshal(indexHead{indexVersion, size, checksum(rest)})
	return slices.Concat(first, lineEnd, rest), err
}

func (e *indexEntry) append(line []byte) []byte {
	line = strconv.AppendInt(append(line, '['), int64(e.series), 10)
	for _, n := range [...]uint64{e.Start, e.Latest - e.Start, e.End - e.Start, uint64(e.Profiles), uint64(e.Samples)} {
		line = strconv.AppendUint(append(line, ','), n, 10)
	}
	return append(e.Sum.append(append(line, ',')), ']')
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(rest []byte) uint32 { return crc32.Checksum(rest, castagnoli) }
