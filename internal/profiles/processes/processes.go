// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package processes keeps the time of each process with a Profile that was merged of several, so that rates stay true when
// attributes that tell processes apart are gone.
//
// The attribute attrkey.Processes of a Profile holds a table, as bytes: a version, then a row for each process. It is no part of the
// identity of the Profile. A Profile without it is that of the process which its resource describes.
package processes

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// MaxRows is how many processes have a row of their own. The rest has one together, whose Hash is Rest.
const (
	MaxRows = 256
	Rest    = 0
)

// Row is a process, or the rest of them. Times are in nanoseconds since the epoch.
type Row struct {
	// Hash is that of the resource as it was received first: see HashResource.
	Hash uint64
	// Start is the start of the first Profile of the process, End the end of the last one. Both are 0 if they are unknown.
	Start, End uint64
	// Covered is how many nanoseconds of the time from Start to End its Profiles cover. It is 0 for snapshots.
	Covered uint64
	// Value is the sum of the values. It may be saturated.
	Value int64
	// Profiles is how many Profiles of the process begin here: 0 if the row only continues one that compaction has divided.
	Profiles int
	// Processes is 1, and in the row of the rest how many there are at most: the same one may be in it more than once.
	Processes int
}

const version = 1

// Append appends a table of rows, which are in order of their hashes, as Join returns them. time is that of the Profile.
func Append(dst []byte, rows []Row, time uint64) []byte {
	dst = append(dst, version)
	for i := range rows {
		r := &rows[i]
		dst = binary.LittleEndian.AppendUint64(dst, r.Hash)
		dst = binary.AppendVarint(dst, int64(r.Start-time)) // #nosec G115 -- a difference, which may be negative
		dst = binary.AppendUvarint(dst, r.End-r.Start)
		dst = binary.AppendUvarint(dst, r.End-r.Start-r.Covered)
		dst = binary.AppendVarint(dst, r.Value)
		dst = binary.AppendUvarint(dst, uint64(r.Profiles)) // #nosec G115 -- not negative
		if r.Hash == Rest {
			dst = binary.AppendUvarint(dst, uint64(r.Processes)) // #nosec G115 -- not negative
		}
	}
	return dst
}

var errTruncated = errors.New("the table of processes is malformed: it ends inside a row")

// Read reads a table. time is that of the Profile.
func Read(table []byte, time uint64) (rows []Row, err error) {
	if len(table) == 0 || table[0] != version {
		return nil, errors.New("the table of processes has an unknown version")
	}
	r := reader{data: table[1:]}
	for len(r.data) > 0 && r.err == nil {
		if len(rows) > MaxRows {
			return nil, fmt.Errorf("the table of processes has more than %d rows", MaxRows+1)
		}
		var row Row
		row.Hash = r.fixed()
		row.Start = time + uint64(r.varint()) // #nosec G115 -- wraps back
		length, idle := r.uvarint(), r.uvarint()
		row.End = row.Start + length
		if row.End < row.Start || idle > length {
			return nil, errors.New("the table of processes is malformed: a row covers more than its time")
		}
		row.Covered = length - idle
		row.Value = r.varint()
		row.Profiles, row.Processes = int(min(r.uvarint(), math.MaxInt32)), 1 // #nosec G115 -- small
		if row.Hash == Rest {
			row.Processes = int(min(max(r.uvarint(), 1), math.MaxInt32)) // #nosec G115 -- small
		}
		rows = append(rows, row)
	}
	if r.err != nil {
		return nil, r.err
	}
	if !slices.IsSortedFunc(rows, func(a, b Row) int { return cmp.Compare(a.Hash, b.Hash) }) {
		return nil, errors.New("the table of processes is malformed: its rows are not in order")
	}
	return rows, nil
}

type reader struct {
	data []byte
	err  error
}

func (r *reader) fixed() (v uint64) {
	if len(r.data) < 8 {
		r.data, r.err = nil, errTruncated
		return 0
	}
	v, r.data = binary.LittleEndian.Uint64(r.data), r.data[8:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.data)
	r.skip(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.data)
	r.skip(n)
	return v
}

func (r *reader) skip(n int) {
	if n <= 0 {
		r.data, r.err = nil, errTruncated
		return
	}
	r.data = r.data[n:]
}

// Join joins two tables, both in order of their hashes, into a new one.
//
// Rows of one process add up. Two rows with the same time and number of Profiles are those of one source that has become several Profiles:
// their time counts once. Otherwise, they cover at most the time from the first start to the last end.
func Join(a, b []Row) []Row {
	if len(a)+len(b) == 0 {
		return nil
	}
	joined := make([]Row, 0, min(len(a)+len(b), MaxRows+1))
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Hash < b[0].Hash:
			joined, a = append(joined, a[0]), a[1:]
		case len(a) == 0 || b[0].Hash < a[0].Hash:
			joined, b = append(joined, b[0]), b[1:]
		default:
			row := a[0]
			row.add(&b[0])
			joined, a, b = append(joined, row), a[1:], b[1:]
		}
	}
	return limited(joined)
}

// add adds a row of the same process, or of the rest.
func (r *Row) add(other *Row) {
	same := r.Start == other.Start && r.End == other.End && r.Profiles == other.Profiles && r.Hash != Rest
	r.Include(other.Start, other.End)
	r.Value = sampletypes.AddSaturated(r.Value, other.Value)
	if same {
		r.Covered = max(r.Covered, other.Covered)
		return
	}
	r.Covered = min(r.Covered+other.Covered, r.End-r.Start)
	r.Profiles = min(r.Profiles+other.Profiles, math.MaxInt32)
	if r.Hash == Rest {
		r.Processes = min(r.Processes+other.Processes, math.MaxInt32)
	}
}

// Include extends the time of a row. A time that is 0 is unknown.
func (r *Row) Include(start, end uint64) {
	if r.Start == 0 || start != 0 && start < r.Start {
		r.Start = start
	}
	r.End = max(r.End, end)
}

// limited puts rows over MaxRows into that of the rest, which comes first. It keeps those with the lowest hashes, so that it does not
// depend on the order in which tables are joined.
func limited(rows []Row) []Row {
	own := rows
	if len(rows) > 0 && rows[0].Hash == Rest {
		own = rows[1:]
	}
	if len(own) <= MaxRows {
		return rows
	}
	rest := Row{Hash: Rest, Start: own[MaxRows].Start, End: own[MaxRows].Start}
	if len(own) < len(rows) {
		rest = rows[0]
	}
	for i := MaxRows; i < len(own); i++ {
		rest.add(&own[i])
	}
	return slices.Insert(slices.Clone(own[:MaxRows]), 0, rest)
}

// HashResource identifies a process by all attributes of its resource, whatever their order. It is never Rest.
func HashResource(attributes pcommon.Map) uint64 {
	var sum uint64
	var room [256]byte // for most attributes
	buf := room[:0]
	for key, value := range attributes.All() {
		buf = append(binary.AppendUvarint(buf[:0], uint64(len(key))), key...)
		buf = appendValue(buf, value)
		sum += mix(xxhash.Sum64(buf))
	}
	return max(mix(sum+uint64(attributes.Len())), 1) // #nosec G115 -- a length
}

// mix spreads the bits of a hash, so that a sum of hashes is one.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

func appendValue(dst []byte, value pcommon.Value) []byte {
	dst = append(dst, byte(value.Type()))
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return append(binary.AppendUvarint(dst, uint64(len(value.Str()))), value.Str()...)
	case pcommon.ValueTypeInt:
		return binary.AppendVarint(dst, value.Int())
	case pcommon.ValueTypeBool:
		if value.Bool() {
			return append(dst, 1)
		}
		return append(dst, 0)
	case pcommon.ValueTypeDouble:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(value.Double()))
	case pcommon.ValueTypeBytes:
		return append(binary.AppendUvarint(dst, uint64(value.Bytes().Len())), value.Bytes().AsRaw()...) // #nosec G115 -- a length
	case pcommon.ValueTypeSlice:
		for _, element := range value.Slice().All() {
			dst = appendValue(dst, element)
		}
		return append(dst, 0xff)
	case pcommon.ValueTypeMap:
		return binary.LittleEndian.AppendUint64(dst, HashResource(value.Map()))
	default:
		return dst
	}
}
