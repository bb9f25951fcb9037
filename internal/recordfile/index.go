// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
)

// IndexSuffix follows the name of a closed file in that of its index.
const IndexSuffix = ".index"

// indexVersion is that of the format of indexes.
const indexVersion = 5

// indexHead is the first line of an index.
type indexHead struct {
	Version  int    `json:"version"`
	Size     int64  `json:"size"`
	Checksum uint32 `json:"checksum"` // CRC-32C of the other lines
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Index says what a file holds.
type Index struct {
	// Totals are those of the file.
	Totals []Summary
	// Labels are those of all its Profiles.
	Labels labels.Set

	size  int64  // of the file
	lines []byte // of the records
}

// IndexRecord describes a record of a file.
type IndexRecord struct {
	Offset, Length int64 // of its bytes in the file
	Summaries      []Summary
}

var lineEnd, space = []byte("\n"), []byte(" ")

// fieldsOfSummary is how many numbers a line has for each summary of a record.
const fieldsOfSummary = 8

// ParseIndex decodes the index of a file of size bytes. The result may refer to data, and takes at most limit
// bytes more, as does that of Records.
func ParseIndex(data []byte, size, limit int64) (*Index, error) {
	first, rest, _ := bytes.Cut(data, lineEnd)
	var head indexHead
	switch err := json.Unmarshal(first, &head); {
	case err != nil:
		return nil, fmt.Errorf("first line: %w", err)
	case head.Version != indexVersion:
		return nil, fmt.Errorf("version is %d: must be %d", head.Version, indexVersion)
	case head.Size != size:
		return nil, fmt.Errorf("size is %d: must be that of the file, %d", head.Size, size)
	case head.Checksum != crc32.Checksum(rest, castagnoli):
		return nil, errors.New("wrong checksum")
	}
	most := int64(bytes.Count(rest, lineEnd) + bytes.Count(rest, space)/fieldsOfSummary) // of summaries and records
	if most > limit/int64(unsafe.Sizeof(Summary{})) {
		return nil, fmt.Errorf("%d summaries take more memory than the limit of %d bytes", most, limit)
	}
	x := &Index{size: size}
	first, x.lines, _ = bytes.Cut(rest, lineEnd)
	if err := json.Unmarshal(first, &x.Labels); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	for bytes.HasPrefix(x.lines, []byte("{")) {
		var line []byte
		var s Summary
		line, x.lines, _ = bytes.Cut(x.lines, lineEnd)
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, fmt.Errorf("series %d: %w", len(x.Totals), err)
		}
		if !s.valid() {
			return nil, fmt.Errorf("series %d is not possible", len(x.Totals))
		}
		x.Totals = append(x.Totals, s)
	}
	if len(x.Totals) == 0 {
		return nil, errors.New("no series")
	}
	return x, nil
}

// Records returns the records of the file, in order.
func (x *Index) Records() ([]IndexRecord, error) {
	records, end := make([]IndexRecord, 0, bytes.Count(x.lines, lineEnd)), int64(0)
	for line := range bytes.Lines(x.lines) {
		n := numbers{rest: bytes.TrimSuffix(line, lineEnd)}
		r := IndexRecord{Offset: n.next(), Length: n.next(), Summaries: make([]Summary, 0, bytes.Count(line, space)/fieldsOfSummary)}
		if r.Offset != end || r.Length <= 0 || r.Length > x.size-end {
			return nil, fmt.Errorf("a record of %d bytes at byte %d: must start at byte %d of %d", r.Length, r.Offset, end, x.size)
		}
		end += r.Length
		for len(n.rest) > 0 && !n.failed {
			place, start := n.next(), uint64(n.next())
			if place < 0 || place >= int64(len(x.Totals)) {
				return nil, fmt.Errorf("series is %d: must be one of %d", place, len(x.Totals))
			}
			of := &x.Totals[place]
			s := Summary{of.Key, Total{
				Timestamps: of.Timestamps, Start: start, Latest: start + uint64(n.next()), End: start + uint64(n.next()), Covered: uint64(n.next()),
				Profiles: int(n.next()), Samples: int(n.next()), Sum: n.next(),
			}}
			if !s.valid() {
				return nil, fmt.Errorf("series %d of the record at byte %d is not possible", place, r.Offset)
			}
			r.Summaries = append(r.Summaries, s)
		}
		if n.failed {
			return nil, fmt.Errorf("malformed line of the record at byte %d", r.Offset)
		}
		records = append(records, r)
	}
	if end != x.size {
		return nil, fmt.Errorf("records end at byte %d: must be %d", end, x.size)
	}
	return records, nil
}

// numbers reads the line of a record.
type numbers struct {
	rest   []byte
	failed bool
}

func (n *numbers) next() int64 {
	var field []byte
	field, n.rest, _ = bytes.Cut(n.rest, space)
	v, err := strconv.ParseInt(string(field), 10, 64)
	n.failed = n.failed || err != nil
	return v
}

// IndexBuilder collects the index of a file.
type IndexBuilder struct {
	memory *semaphore.Weighted
	// reserved is what was taken from memory and not given back. After Add it is what the index holds.
	reserved int64
	places   map[Key]int64 // in totals; nil if there is no index
	totals   []Summary
	series   int64 // bytes of totals and places
	labels   labels.Set
	lines    []byte // of the records
	err      error  // why records were added of which the index has nothing, or not all
}

// seriesSize is the memory of a total without its strings, with the growth of slice and map.
const seriesSize = 2 * int64(unsafe.Sizeof(Summary{})+unsafe.Sizeof(Key{})+16)

// ErrIndexMemory means that the indexes of all open files together take too much memory for this one, or for all of it.
var ErrIndexMemory = errors.New("the indexes of the open files take too much memory")

// NewIndexBuilder returns an IndexBuilder that takes bytes from memory, which others may share. Its owner calls Release.
func NewIndexBuilder(memory *semaphore.Weighted) *IndexBuilder {
	return &IndexBuilder{memory: memory, places: map[Key]int64{}}
}

// Add adds the next record: where its bytes are, its summaries and its labels. Summaries of one Key are of different
// minutes. Without summaries, the file gets no index. If there is no memory for all, the index has no values of labels, and if
// that is not enough, the file gets none. It never panics: the record is safe already, and an index is a cache.
func (b *IndexBuilder) Add(offset, length int64, summaries []Summary, of *labels.Set) {
	if len(summaries) == 0 {
		b.Release()
	}
	if b.places == nil {
		return
	}
	if err := b.add(offset, length, summaries, of); err != nil {
		b.leaveOut(err)
		return
	}
	if b.reserve() {
		return
	}
	b.err, b.labels = ErrIndexMemory, labels.Set{}
	b.labels.Merge(nil) // they are not known
	if !b.reserve() {
		b.leaveOut(ErrIndexMemory)
	}
}

// add adds a record without memory for it. The error is a panic.
func (b *IndexBuilder) add(offset, length int64, summaries []Summary, of *labels.Set) (err error) {
	defer panics.Catch(&err)
	if !errors.Is(b.err, ErrIndexMemory) {
		b.labels.Merge(of)
	}
	b.appendNumbers(offset, length)
	for i := range summaries {
		s := &summaries[i]
		place, known := b.places[s.Key]
		if known {
			b.totals[place].Add(s)
		} else {
			b.series += seriesSize + s.TextSize()
			place = int64(len(b.totals))
			own := *s
			for _, text := range own.texts() {
				*text = strings.Clone(*text) // it may be part of the payload
			}
			b.places[own.Key] = place
			b.totals = append(b.totals, own)
		}
		b.appendNumbers(place, int64(s.Start), int64(s.Latest-s.Start), int64(s.End-s.Start), int64(s.Covered))
		b.appendNumbers(int64(s.Profiles), int64(s.Samples), s.Sum)
	}
	b.lines[len(b.lines)-1] = lineFeed
	return nil
}

// held is the memory of the index in bytes, with the growth of the slice of lines. It may fall: labels with too many values lose them.
func (b *IndexBuilder) held() int64 { return b.labels.Size() + b.series + 2*int64(len(b.lines)) }

// reserve takes from memory what the index holds, and gives back what it holds no more. It returns false if there is not enough.
func (b *IndexBuilder) reserve() bool {
	held := b.held()
	switch {
	case held > b.reserved && !b.memory.TryAcquire(held-b.reserved):
		return false
	case held < b.reserved:
		b.memory.Release(b.reserved - held)
	}
	b.reserved = held
	return true
}

// appendNumbers appends numbers to the line of a record, with a space after each. fmt takes four times as long.
func (b *IndexBuilder) appendNumbers(numbers ...int64) {
	for _, n := range numbers {
		b.lines = append(strconv.AppendInt(b.lines, n, 10), ' ')
	}
}

// Release releases the memory. There is no index then.
func (b *IndexBuilder) Release() {
	b.memory.Release(b.reserved)
	*b = IndexBuilder{memory: b.memory, err: b.err}
}

// leaveOut is Release because of an error.
func (b *IndexBuilder) leaveOut(err error) {
	b.err = err
	b.Release()
}

// Encode returns the index of a file of size bytes, or nil if there is none.
func (b *IndexBuilder) Encode(size int64) []byte {
	if len(b.totals) == 0 {
		return nil
	}
	var rest, head bytes.Buffer
	encoder := json.NewEncoder(&rest) // of lines; texts and numbers are never an error
	_ = encoder.Encode(&b.labels)
	for i := range b.totals {
		_ = encoder.Encode(&b.totals[i])
	}
	_, _ = rest.Write(b.lines)
	_ = json.NewEncoder(&head).Encode(indexHead{indexVersion, size, crc32.Checksum(rest.Bytes(), castagnoli)})
	return append(head.Bytes(), rest.Bytes()...)
}

// maxIndexes bounds the memory in bytes for the indexes of all open files of a Writer. One that does not fit loses its labels,
// or is left out.
const maxIndexes = 16 << 20

// writeIndex writes the index of a file that has its final name. The error is why the file has none, or one without labels.
func (f *partialFile) writeIndex() (err error) {
	defer panics.Catch(&err)
	data := f.index.Encode(f.Size)
	if data == nil {
		return f.index.err
	}
	name := f.name.String() + IndexSuffix
	file, err := f.dir.Create(name)
	if err != nil {
		return &fs.PathError{Op: "create", Path: f.Path + IndexSuffix, Err: err}
	}
	if err := errors.Join(writeAt(file, data, 0), file.Close()); err != nil {
		_ = f.dir.Remove(name) // if it fails, readers reject the index by its checksum
		return &fs.PathError{Op: "write", Path: f.Path + IndexSuffix, Err: err}
	}
	return f.index.err
}
