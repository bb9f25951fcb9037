// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unsafe"
)

// Suffix follows the name of a closed file in that of its index.
const IndexSuffix = ".index"

// Index says what a file holds.
type Index struct {
	// Totals are those of the file.
	Totals []Summary

	size  int64 // of the file
	lines []byte
}

// Record describes a record of a file.
type IndexRecord struct {
	Offset, Length int64 // of its bytes in the file
	Summaries      []Summary
}

// Parse decodes the index of a file of size bytes. The result may refer to data, and takes at most limit
// bytes more, as does that of Records.
func ParseIndex(data []byte, size, limit int64) (*Index, error) {
	first, rest, _ := bytes.Cut(data, lineEnd)
	var h indexHead
	switch err := json.Unmarshal(first, &h); {
	case err != nil:
		return nil, fmt.Errorf("first line: %w", err)
	case h.Version != indexVersion:
		return nil, fmt.Errorf("version is %d: must be %d", h.Version, indexVersion)
	case h.Size != size:
		return nil, fmt.Errorf("size is %d: must be that of the file, %d", h.Size, size)
	case h.Checksum != checksum(rest):
		return nil, errors.New("wrong checksum")
	}
	// Each Summary has a bracket of its own.
	if n := int64(bytes.Count(rest, []byte("{")) + bytes.Count(rest, []byte("["))); n > limit/int64(unsafe.Sizeof(Summary{})) {
		return nil, fmt.Errorf("%d summaries take more memory than the limit of %d bytes", n, limit)
	}
	second, lines, _ := bytes.Cut(rest, lineEnd)
	series, err := readTotals(second)
	if err != nil {
		return nil, fmt.Errorf("second line: %w", err)
	}
	return &Index{Totals: series, size: size, lines: lines}, nil
}

// readTotals reads the second line. It stops at the first element that is no Summary: each null or number of a text
// takes the memory of one, 70 times that of the text.
func readTotals(line []byte) (series []Summary, err error) {
	var text struct {
		Series json.RawMessage `json:"series"`
	}
	if err := json.Unmarshal(line, &text); err != nil {
		return nil, err
	}
	elements := json.NewDecoder(bytes.NewReader(text.Series))
	if start, err := elements.Token(); err != nil || start != json.Delim('[') || !elements.More() {
		return nil, errors.New("no series")
	}
	series = make([]Summary, 0, bytes.Count(text.Series, []byte("{")))
	for elements.More() {
		var s Summary
		if err := elements.Decode(&s); err != nil {
			return nil, fmt.Errorf("series[%d]: %w", len(series), err)
		}
		if !s.valid() {
			return nil, fmt.Errorf("series[%d] is not possible", len(series))
		}
		series = append(series, s)
	}
	return series, nil
}

var lineEnd = []byte("\n")

// Records returns the records of the file, in order. If the index has only totals, it returns one record with
// these.
func (x *Index) Records() ([]IndexRecord, error) {
	if len(x.lines) == 0 {
		return []IndexRecord{{Length: x.size, Summaries: x.Totals}}, nil
	}
	records, end := make([]IndexRecord, 0, bytes.Count(x.lines, []byte("{"))), int64(0)
	var entries []indexEntry
	for line := range bytes.Lines(x.lines) {
		l := indexLine{rest: line}
		place := l.record()
		entries = entries[:0]
		for l.more() {
			entries = append(entries, l.entry())
		}
		l.text("\n")
		if l.failed {
			return nil, fmt.Errorf("malformed line of the record at byte %d", end)
		}
		if place.offset != end || place.length <= 0 || place.length > x.size-end {
			return nil, fmt.Errorf("a record of %d bytes at byte %d: must start at byte %d of %d", place.length, place.offset, end, x.size)
		}
		end += place.length
		for i := range entries {
			if e := &entries[i]; uint64(e.series) >= uint64(len(x.Totals)) {
				return nil, fmt.Errorf("series %d: must be one of %d", e.series, len(x.Totals))
			}
		}
		r := x.record(place, entries)
		for i := range r.Summaries {
			if !r.Summaries[i].valid() {
				return nil, fmt.Errorf("series[%d] of the record at byte %d is not possible", i, place.offset)
			}
		}
		records = append(records, r)
	}
	if end != x.size {
		return nil, fmt.Errorf("records end at byte %d: must be %d", end, x.size)
	}
	return records, nil
}

func (x *Index) record(place recordPlace, entries []indexEntry) IndexRecord {
	r := IndexRecord{Offset: place.offset, Length: place.length, Summaries: make([]Summary, len(entries))}
	for i, e := range entries {
		of := &x.Totals[e.series]
		e.Timestamps = of.Timestamps
		r.Summaries[i] = Summary{of.Key, e.Total}
	}
	return r
}

// lineReader reads the line of a record as Encode writes it: encoding/json takes ten times as long.
type indexLine struct {
	rest    []byte
	entries int
	failed  bool
}

func (l *indexLine) record() recordPlace {
	l.text(`{"offset":`)
	offset := l.integer()
	l.text(`,"length":`)
	length := l.integer()
	l.text(`,"series":[`)
	return recordPlace{offset: offset, length: length}
}

// more reports whether there is another entry, and skips the bytes before it.
func (l *indexLine) more() bool {
	if l.failed || bytes.HasPrefix(l.rest, []byte("]")) {
		l.text("]}")
		return false
	}
	if l.entries++; l.entries > 1 {
		l.text(",")
	}
	return !l.failed
}

func (l *indexLine) entry() indexEntry {
	l.text("[")
	series := l.natural()
	var n [5]uint64
	for i := range n {
		l.text(",")
		n[i] = l.natural()
	}
	l.text(",")
	e := indexEntry{int32(series), Total{Start: n[0], Latest: n[0] + n[1], End: n[0] + n[2], Profiles: int(n[3]), Samples: int(n[4]), Sum: l.sum()}}
	l.text("]")
	l.failed = l.failed || series > math.MaxInt32
	return e
}

func (l *indexLine) text(want string) {
	rest, found := bytes.CutPrefix(l.rest, []byte(want))
	l.rest, l.failed = rest, l.failed || !found
}

// number returns the digits that come next, with a sign.
func (l *indexLine) number() string {
	end := 0
	for end < len(l.rest) && (l.rest[end] == '-' || l.rest[end] >= '0' && l.rest[end] <= '9') {
		end++
	}
	digits := string(l.rest[:end])
	l.rest = l.rest[end:]
	return digits
}

func (l *indexLine) natural() uint64 {
	n, err := strconv.ParseUint(l.number(), 10, 64)
	l.failed = l.failed || err != nil
	return n
}

func (l *indexLine) integer() int64 {
	n, err := strconv.ParseInt(l.number(), 10, 64)
	l.failed = l.failed || err != nil
	return n
}

func (l *indexLine) sum() (s Sum) {
	digits := l.number()
	if v, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return SumOf(v)
	}
	l.failed = s.UnmarshalJSON([]byte(digits)) != nil || l.failed
	return s
}
