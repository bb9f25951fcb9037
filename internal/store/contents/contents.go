// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package contents describes what profiles a record has: for each [Key] their times, numbers and sums, and the labels of all records of a
// segment. It encodes that as the entries and tables of an index.
//
// What does not fit into the bounds of an index is marked as incomplete: readers then read the record.
package contents

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
)

// Entry describes a record.
type Entry struct {
	// Start is the earliest start of a Profile, End the latest end, in nanoseconds since the epoch. Start is 0 if a Profile has no
	// time, and both are if none has.
	Start, End uint64
	Samples    int
	// Summaries are of different keys or minutes. They are nil if they are Incomplete.
	Summaries []Summary
	// Incomplete: there was no room for the summaries.
	Incomplete bool
	// Labels are those of the record when it is written, nil if they are not known. An entry that was read has none: they are
	// those of the segment.
	Labels *labels.Set
}

// Describe returns the entry of a payload, which may refer to it. The attributes of resources and scopes must show their strings, so a
// payload is described before it is marshalled. An error says why readers reject the payload.
func Describe(pd pprofile.Profiles) (*Entry, error) {
	summaries, err := Summarize(pd)
	if err != nil {
		return nil, err
	}
	e := &Entry{Summaries: summaries, Labels: labels.Of(pd), Samples: pd.SampleCount(), Start: math.MaxUint64}
	for i := range summaries {
		e.Start, e.End = min(e.Start, summaries[i].Start), max(e.End, summaries[i].End)
	}
	if len(summaries) == 0 {
		e.Start = 0
	}
	return e, nil
}

// maxSegment bounds the memory in bytes of what a Builder keeps.
const maxSegment = 4 << 20

// keySize is the memory of a key without its strings, with the growth of slice and map.
const keySize = 2 * int64(2*unsafe.Sizeof(Key{})+16)

// Builder encodes the entries of one segment. It is not safe for concurrent use.
type Builder struct {
	memory   *semaphore.Weighted
	reserved int64
	places   map[Key]int // in keys
	keys     []Key
	labels   labels.Set
	labelled int64 // the part of reserved that is for labels
	short    error // why the last incomplete entry is one
}

// ErrMemory says that there was no room for an entry, and ErrUnknown that nothing is known about a record.
var (
	ErrMemory  = errors.New("indexes would take too much memory")
	ErrUnknown = errors.New("a record cannot be described")
)

// Incomplete returns why some entries are incomplete, or nil if none is.
func (b *Builder) Incomplete() error { return b.short }

// NewBuilder returns a Builder that takes bytes from memory, which others may share; nil is no limit but that of a
// segment. Its owner calls Release.
func NewBuilder(memory *semaphore.Weighted) *Builder {
	return &Builder{memory: memory, places: map[Key]int{}}
}

// Release releases the memory.
func (b *Builder) Release() {
	if b.memory != nil {
		b.memory.Release(b.reserved)
	}
	*b = Builder{memory: b.memory, places: map[Key]int{}}
}

// reserve takes memory, and reports whether there is room.
func (b *Builder) reserve(size int64) bool {
	if b.reserved+size > maxSegment || b.memory != nil && !b.memory.TryAcquire(size) {
		return false
	}
	b.reserved += size
	return true
}

// addLabels merges labels, which have a bound of their own. What they take is counted once, also if they get smaller.
func (b *Builder) addLabels(set *labels.Set) {
	b.labels.Merge(set)
	if grown := b.labels.Size() - b.labelled; grown > 0 && b.reserve(grown) {
		b.labelled += grown
	}
}

// Add encodes the entry of the next record; nil stands for a record about which nothing is known.
func (b *Builder) Add(e *Entry) []byte {
	if e == nil {
		e, b.short = &Entry{Incomplete: true}, ErrUnknown
	}
	b.addLabels(e.Labels)
	encoded, size := b.encode(e)
	if !b.reserve(size + int64(len(encoded))) {
		short := Entry{Start: e.Start, End: e.End, Samples: e.Samples, Incomplete: true}
		b.short = ErrMemory
		encoded, _ = b.encode(&short)
		return encoded
	}
	for i := range e.Summaries {
		key := e.Summaries[i].Key
		if _, known := b.places[key]; !known {
			for _, text := range key.texts() {
				*text = strings.Clone(*text) // it may be part of the payload
			}
			b.places[key] = len(b.keys)
			b.keys = append(b.keys, key)
		}
	}
	return encoded
}

// encode encodes an entry whose new keys get the next places, and returns the memory that these take.
func (b *Builder) encode(e *Entry) (data []byte, size int64) {
	flags := uint64(0)
	if e.Incomplete {
		flags = flagIncomplete
	}
	data = appendNumbers(nil, flags, e.Start, e.End-e.Start, uint64(e.Samples), uint64(len(e.Summaries)))
	added := map[Key]int{}
	for i := range e.Summaries {
		s := &e.Summaries[i]
		place, known := b.places[s.Key]
		if !known {
			if place, known = added[s.Key]; !known {
				place = len(b.keys) + len(added)
				added[s.Key] = place
				size += keySize + s.TextSize()
			}
		}
		flags := uint64(0)
		if s.Timestamps {
			flags = flagTimestamps
		}
		data = appendNumbers(data, uint64(place), flags, s.Start, s.Latest-s.Start, s.End-s.Start, s.Covered, uint64(s.Profiles), uint64(s.Samples))
		data = binary.AppendVarint(data, s.Sum)
		table := processes.Append(nil, s.Rows, s.Start)
		data = append(appendNumbers(data, uint64(len(table))), table...)
	}
	return data, size
}

const (
	flagIncomplete = 1 // of an entry
	flagTimestamps = 1 // of a summary
)

func appendNumbers(data []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		data = binary.AppendUvarint(data, n)
	}
	return data
}

// Tables encodes what the entries refer to.
func (b *Builder) Tables() []byte {
	data := appendNumbers(nil, uint64(len(b.keys)))
	for i := range b.keys {
		for _, text := range b.keys[i].texts() {
			data = append(appendNumbers(data, uint64(len(*text))), *text...)
		}
		data = appendNumbers(data, b.keys[i].Snapshot)
	}
	set, _ := json.Marshal(&b.labels) // texts are never an error
	return append(appendNumbers(data, uint64(len(set))), set...)
}

// Tables are what the entries of a segment refer to.
type Tables struct {
	Keys   []Key
	Labels labels.Set
}

// ParseTables decodes what Builder.Tables returned.
func ParseTables(data []byte) (*Tables, error) {
	r := reader{rest: data}
	t := &Tables{Keys: make([]Key, 0, min(r.peek(), 1<<16))}
	for range r.count() {
		var key Key
		for _, text := range key.texts() {
			*text = string(r.bytes())
		}
		key.Snapshot = r.uint()
		t.Keys = append(t.Keys, key)
	}
	set := r.bytes()
	if r.failed || len(r.rest) > 0 {
		return nil, errors.New("tables are malformed")
	}
	if err := t.Labels.UnmarshalJSON(set); err != nil {
		return nil, fmt.Errorf("labels: %w", err)
	}
	return t, nil
}

// Entry decodes what Builder.Add returned. Bytes after the last field are for later versions.
func (t *Tables) Entry(data []byte) (*Entry, error) {
	r := reader{rest: data}
	e := &Entry{Incomplete: r.uint()&flagIncomplete != 0, Start: r.uint()}
	e.End, e.Samples = e.Start+r.uint(), int(r.uint())
	n := r.count()
	if n > 0 {
		e.Summaries = make([]Summary, 0, n)
	}
	for range n {
		place, flags := r.uint(), r.uint()
		if place >= uint64(len(t.Keys)) {
			return nil, fmt.Errorf("series is %d: must be one of %d", place, len(t.Keys))
		}
		s := Summary{Key: t.Keys[place], Total: Total{Timestamps: flags&flagTimestamps != 0, Start: r.uint()}}
		s.Latest, s.End = s.Start+r.uint(), s.Start+r.uint()
		s.Covered, s.Profiles, s.Samples, s.Sum = r.uint(), int(r.uint()), int(r.uint()), r.int()
		var err error
		if s.Rows, err = processes.Read(r.bytes(), s.Start); err != nil || !s.valid() {
			return nil, fmt.Errorf("series %d is not possible", place)
		}
		e.Summaries = append(e.Summaries, s)
	}
	if r.failed {
		return nil, errors.New("entry is malformed")
	}
	return e, nil
}

// reader reads numbers and texts. After a failure all are 0 or empty.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) fail() {
	r.failed, r.rest = true, nil
}

func (r *reader) uint() uint64 {
	v, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return v
}

func (r *reader) int() int64 {
	v, size := binary.Varint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return v
}

// count reads the number of elements, each of which has a byte or more.
func (r *reader) count() int {
	v := r.uint()
	if v > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return int(v)
}

// peek returns the next number.
func (r *reader) peek() int {
	ahead := *r
	return ahead.count()
}

func (r *reader) bytes() []byte {
	size := r.count()
	data := r.rest[:size]
	r.rest = r.rest[size:]
	return data
}
