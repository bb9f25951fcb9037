// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package segmenttest makes records and files of records, for tests only.
package segmenttest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// Framed are the formats of files with several records, Bare those of one protobuf message, and Formats all
// ways to write a file.
var (
	Framed = []segment.Format{
		{Content: segment.OTLPProto, Compression: segment.None},
		{Content: segment.OTLPProto, Compression: segment.Gzip},
		{Content: segment.OTLPProto, Compression: segment.Zstd},
		{Content: segment.OTLPJSON, Compression: segment.None},
		{Content: segment.OTLPJSON, Compression: segment.Gzip},
		{Content: segment.OTLPJSON, Compression: segment.Zstd},
	}
	Bare = []segment.Format{
		{Content: segment.OTLPProto, Bare: true, Compression: segment.None},
		{Content: segment.OTLPProto, Bare: true, Compression: segment.Gzip},
		{Content: segment.OTLPProto, Bare: true, Compression: segment.Zstd},
	}
	Formats = append(append(Framed[:6:6], Bare...), segment.Format{Content: segment.Pprof, Bare: true, Compression: segment.Gzip})
)

// TestName names a subtest after a format.
func TestName(f segment.Format) string {
	_, extension, _ := strings.Cut(segment.Name{Format: f}.String(), "-000000.")
	return extension + map[bool]string{true: " bare"}[f.Bare]
}

// ForEachFormat runs a test for each way to write a file.
func ForEachFormat(t *testing.T, test func(t *testing.T, format segment.Format)) {
	for _, format := range Formats {
		t.Run(TestName(format), func(t *testing.T) { test(t, format) })
	}
}

// Record makes a record that ID tells from all others. size is that of its content in bytes, of which half
// compresses.
func Record(content segment.Content, id, size int) []byte {
	random := rand.New(rand.NewPCG(uint64(id), uint64(size)))
	payload, scratch := make([]byte, 4+size), [8]byte{}
	binary.BigEndian.PutUint32(payload, uint32(id))
	for i := 4; i < 4+size/2; i += 8 {
		binary.NativeEndian.PutUint64(scratch[:], random.Uint64())
		copy(payload[i:4+size/2], scratch[:])
	}
	if content == segment.OTLPJSON {
		record, err := json.Marshal(map[string]any{"id": id, "payload": payload, "list": []any{map[string]int{}, map[string]int{}}})
		if err != nil {
			panic(err)
		}
		return record
	}
	// A ResourceProfiles with a schema_url, and a dictionary of the empty string.
	inner := binary.AppendUvarint([]byte{3<<3 | wire.BytesType}, uint64(len(payload)))
	inner = append(inner, payload...)
	record := binary.AppendUvarint([]byte{1<<3 | wire.BytesType}, uint64(len(inner)))
	record = append(record, inner...)
	return append(record, 2<<3|wire.BytesType, 2, 5<<3|wire.BytesType, 0)
}

// ID returns the id of a record that Record made, and whether it is one with content of size bytes.
func ID(content segment.Content, record []byte, size int) (id int, known bool) {
	if content == segment.OTLPJSON {
		var read struct{ ID int }
		if json.Unmarshal(record, &read) != nil {
			return 0, false
		}
		id = read.ID
	} else {
		_, n := binary.Uvarint(record[1:])
		inner := record[min(1+n, len(record)):]
		if len(inner) == 0 {
			return 0, false
		}
		_, n = binary.Uvarint(inner[1:])
		payload := inner[min(1+n, len(inner)):]
		if len(payload) < 4 {
			return 0, false
		}
		id = int(binary.BigEndian.Uint32(payload))
	}
	return id, bytes.Equal(record, Record(content, id, size))
}

// File returns the bytes of a file with the records 1 to n.
func File(t testing.TB, format segment.Format, n, size int) []byte {
	data, _ := FileWithEnds(t, format, n, size)
	return data
}

// FileWithEnds returns the bytes of a file with the records 1 to n, and where each of them ends.
func FileWithEnds(t testing.TB, format segment.Format, n, size int) (data []byte, ends []int) {
	for id := 1; id <= n; id++ {
		e, err := segment.Encode(format, Record(format.Content, id, size))
		require.NoError(t, err)
		data = append(data, bytes.Join(e.Chunks[:], nil)...)
		ends = append(ends, len(data))
		e.Release()
	}
	return data, ends
}

// Separable reports whether the next record can be found after a damaged one.
func Separable(format segment.Format) bool {
	return format.Compression != segment.None || format.Content == segment.OTLPJSON
}

// ReadDamaged returns the ids of the records that are as they were made, the number
// of others, and the reports.
func ReadDamaged(t testing.TB, data []byte, format segment.Format, size int) (ids []int, changed int, reports []*segment.DamageError) {
	r, err := segment.NewReader(bytes.NewReader(data), int64(len(data)), format, segment.MaxRecordSize)
	require.NoError(t, err)
	defer r.Close()
	last := int64(0)
	for {
		record, err := r.Next()
		var damage *segment.DamageError
		switch {
		case errors.Is(err, io.EOF):
			require.Equal(t, int64(len(data)), r.Offset())
			return ids, changed, reports
		case errors.As(err, &damage):
			require.Equal(t, last, damage.Offset)
			require.Equal(t, r.Offset(), damage.Offset+damage.Length)
			require.ErrorContains(t, damage, fmt.Sprintf("damaged at byte %d: ", damage.Offset))
			require.ErrorContains(t, damage, fmt.Sprintf("skipped %d bytes", damage.Length))
			if !Separable(format) {
				require.Equal(t, int64(len(data)), r.Offset(), "the file is read up to the damage")
			}
			reports = append(reports, damage)
		default:
			require.NoError(t, err)
			if id, known := ID(format.Content, record, size); known {
				ids = append(ids, id)
			} else {
				changed++
			}
		}
		require.Greater(t, r.Offset(), last, "it goes on")
		last = r.Offset()
	}
}

// Flips accounts for the records of files of which one byte each was changed.
type Flips struct{ files, records, readable, changed int }

// Add takes a file of n records. Those that are not there were reported; those that
// have no checksum may be changed instead.
func (f *Flips) Add(n int, ids []int, changed int) {
	f.files++
	f.records += n
	f.readable += len(ids) + changed
	f.changed += changed
}

// Account prints them for the table of faults.
func (f *Flips) Account(t *testing.T) {
	t.Helper()
	profiletest.Account(t, fmt.Sprintf("%d flipped bytes, %d changed records without a checksum", f.files, f.changed), f.records, f.readable, f.records-f.readable)
}

// HeapProfile returns a record of samples as a heap profile has them, most of value 0: between two of them
// there often are bytes that read as a length.
func HeapProfile(t testing.TB, seed uint64, samples int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "inuse_space", "bytes")
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for i := range samples {
		s := p.Samples().AppendEmpty()
		s.SetStackIndex(int32(128 + i%16_000))
		value := int64(0)
		if random.IntN(10) == 0 {
			value = random.Int64N(1 << 20)
		}
		s.Values().Append(value)
	}
	return profiletest.Proto(t, pd)
}

// Prefixed returns the bytes of an uncompressed file of messages.
func Prefixed(records ...[]byte) []byte {
	var file []byte
	for _, record := range records {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(record))), record...)
	}
	return file
}
