// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fileindex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unsafe"
)

// Suffix follows the name of a closed file in that of its index.
const Suffix = ".index"

// Index says what a file holds.
type Index struct {
	// Totals are those of the file.
	Totals []Summary

	size    int64 // of the file
	lines   []byte
	records []Record // nil until they are decoded
}

// Record describes a record of a file.
type Record struct {
	Offset, Length int64 // of its bytes in the file
	Summaries      []Summary
}

// Parse decodes the index of a file of size bytes. The result may refer to data, and takes at most limit
// bytes more, as does that of Records.
func Parse(data []byte, size, limit int64) (*Index, error) {
	first, rest, _ := bytes.Cut(data, lineFeed)
	head := lineReader{rest: first}
	head.text(`{"version":`)
	version := head.integer()
	head.text(`,"size":`)
	ofSize := head.integer()
	head.text(`,"checksum":`)
	ofRest := head.natural()
	head.text("}")
	switch {
	case head.failed || len(head.rest) > 0:
		return nil, errors.New("malformed first line")
	case version != Version:
		return nil, fmt.Errorf("version is %d: must be %d", version, Version)
	case ofSize != size:
		return nil, fmt.Errorf("size is %d: must be that of the file, %d", ofSize, size)
	case ofRest != uint64(checksum(rest)):
		return nil, errors.New("wrong checksum")
	}
	// Each Summary has a bracket of its own.
	if n := int64(bytes.Count(rest, []byte("{")) + bytes.Count(rest, []byte("["))); n > limit/int64(unsafe.Sizeof(Summary{})) {
		return nil, fmt.Errorf("%d summaries take more memory than the limit of %d bytes", n, limit)
	}
	second, lines, _ := bytes.Cut(rest, lineFeed)
	series, err := parseTotals(second)
	if err != nil {
		return nil, fmt.Errorf("second line: %w", err)
	}
	if len(series) == 0 {
		return nil, errors.New("second line: no series")
	}
	for i := range series {
		if !series[i].valid() {
			return nil, fmt.Errorf("series[%d] is not possible", i)
		}
	}
	return &Index{Totals: series, size: size, lines: lines}, nil
}

// parseTotals reads the second line.
func parseTotals(line []byte) ([]Summary, error) {
	l := lineReader{rest: line}
	l.text(`{"series":[`)
	series := make([]Summary, 0, bytes.Count(line, []byte("{")))
	for l.more() {
		series = append(series, l.total())
	}
	if l.failed || len(l.rest) > 0 {
		return nil, errors.New("malformed")
	}
	return series, nil
}

var lineFeed = []byte("\n")

// Records returns the records of the file, in order. If the index has only totals, it returns one record with
// these.
func (x *Index) Records() ([]Record, error) {
	if x.records != nil {
		return x.records, nil
	}
	if len(x.lines) == 0 {
		return []Record{{Length: x.size, Summaries: x.Totals}}, nil
	}
	records, end := make([]Record, 0, bytes.Count(x.lines, lineFeed)), int64(0)
	var entries []entry
	for line := range bytes.Lines(x.lines) {
		l := lineReader{rest: line}
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
	x.records, x.lines = records, nil
	return records, nil
}

func (x *Index) record(place recordPlace, entries []entry) Record {
	r := Record{Offset: place.offset, Length: place.length, Summaries: make([]Summary, len(entries))}
	for i, e := range entries {
		of := &x.Totals[e.series]
		r.Summaries[i] = Summary{
			Key: of.Key, Timestamps: of.Timestamps, Start: e.start, Latest: e.latest, End: e.end,
			Profiles: e.profiles, Samples: e.samples, Sum: e.sum,
		}
	}
	return r
}

// lineReader reads a line as Encode writes it: encoding/json takes ten times as long.
type lineReader struct {
	rest    []byte
	entries int
	failed  bool
}

func (l *lineReader) record() recordPlace {
	l.text(`{"offset":`)
	offset := l.integer()
	l.text(`,"length":`)
	length := l.integer()
	l.text(`,"series":[`)
	return recordPlace{offset: offset, length: length}
}

// more reports whether there is another entry, and skips the bytes before it.
func (l *lineReader) more() bool {
	if l.failed || bytes.HasPrefix(l.rest, []byte("]")) {
		l.text("]}")
		return false
	}
	if l.entries++; l.entries > 1 {
		l.text(",")
	}
	return !l.failed
}

func (l *lineReader) entry() entry {
	l.text("[")
	series := l.natural()
	var n [5]uint64
	for i := range n {
		l.text(",")
		n[i] = l.natural()
	}
	l.text(",")
	e := entry{series: int32(series), start: n[0], latest: n[0] + n[1], end: n[0] + n[2], profiles: int(n[3]), samples: int(n[4]), sum: l.sum()}
	l.text("]")
	l.failed = l.failed || series > math.MaxInt32
	return e
}

// total reads a Summary, whose names are in the order of its fields. Those of zero values may be absent.
func (l *lineReader) total() Summary {
	var s Summary
	l.text("{")
	for _, field := range []struct {
		name string
		to   *string
	}{{`"service":"`, &s.Service}, {`"type":"`, &s.Type}, {`"sample_type":"`, &s.SampleType}, {`"unit":"`, &s.Unit}} {
		if l.optional(field.name) {
			*field.to = l.quoted()
			l.text(",")
		}
	}
	if l.optional(`"snapshot":`) {
		s.Snapshot = l.natural()
		l.text(",")
	}
	s.Timestamps = l.optional(`"timestamps":true,`)
	for _, field := range []struct {
		name string
		to   *uint64
	}{{`"start":`, &s.Start}, {`"latest":`, &s.Latest}, {`"end":`, &s.End}} {
		if l.optional(field.name) {
			*field.to = l.natural()
			l.text(",")
		}
	}
	l.text(`"profiles":`)
	s.Profiles = int(l.integer())
	l.text(`,"samples":`)
	s.Samples = int(l.integer())
	l.text(`,"sum":`)
	s.Sum = l.sum()
	l.text("}")
	return s
}

// quoted reads the rest of a string.
func (l *lineReader) quoted() string {
	end := bytes.IndexByte(l.rest, '"')
	if end < 0 {
		l.failed = true
		return ""
	}
	if bytes.IndexByte(l.rest[:end], '\\') >= 0 {
		return l.escaped()
	}
	text := string(l.rest[:end])
	l.rest = l.rest[end+1:]
	return text
}

// escaped is quoted for a string with escape sequences.
func (l *lineReader) escaped() (text string) {
	const quote = `"`
	value := json.NewDecoder(io.MultiReader(strings.NewReader(quote), bytes.NewReader(l.rest)))
	if value.Decode(&text) != nil {
		l.failed = true
		return ""
	}
	l.rest = l.rest[value.InputOffset()-int64(len(quote)):]
	return text
}

// optional reads text if it is next.
func (l *lineReader) optional(text string) bool {
	if len(l.rest) < len(text) || string(l.rest[:len(text)]) != text {
		return false
	}
	l.rest = l.rest[len(text):]
	return true
}

func (l *lineReader) text(want string) {
	if !l.optional(want) {
		l.failed = true
	}
}

// natural reads a number without sign.
func (l *lineReader) natural() uint64 {
	n := uint64(0)
	for i, c := range l.rest {
		if c < '0' || c > '9' {
			l.failed = l.failed || i == 0
			l.rest = l.rest[i:]
			return n
		}
		digit := uint64(c - '0')
		if n > (math.MaxUint64-digit)/10 {
			break
		}
		n = 10*n + digit
	}
	l.failed = true
	return 0
}

func (l *lineReader) integer() int64 {
	negative := bytes.HasPrefix(l.rest, []byte("-"))
	if negative {
		l.rest = l.rest[1:]
	}
	n := l.natural()
	switch {
	case negative && n <= -math.MinInt64:
		return -int64(n)
	case !negative && n <= math.MaxInt64:
		return int64(n)
	}
	l.failed = true
	return 0
}
