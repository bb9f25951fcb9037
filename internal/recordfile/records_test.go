// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// allFormats are all ways to write a file.
var allFormats = []Format{
	{Content: OTLPProto, Compression: None},
	{Content: OTLPProto, Compression: Gzip},
	{Content: OTLPProto, Compression: Zstd},
	{Content: OTLPJSON, Compression: None},
	{Content: OTLPJSON, Compression: Gzip},
	{Content: OTLPJSON, Compression: Zstd},
}

// formatName names a subtest after a format.
func formatName(f Format) string {
	_, extension, _ := strings.Cut(Name{Format: f}.String(), "-000000.")
	return extension
}

// forEachFormat runs a test for each way to write a file.
func forEachFormat(t *testing.T, test func(t *testing.T, format Format)) {
	for _, format := range allFormats {
		t.Run(formatName(format), func(t *testing.T) { test(t, format) })
	}
}

// randomBytes returns the same bytes each time, which do not compress.
func randomBytes(n int) []byte {
	random := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // never fails
	return random
}

// newRecord makes a record that ID tells from all others. size is that of its content in bytes, of which half
// compresses.
func newRecord(content Content, id, size int) []byte {
	random := rand.New(rand.NewPCG(uint64(id), uint64(size)))
	payload, scratch := make([]byte, 4+size), [8]byte{}
	binary.BigEndian.PutUint32(payload, uint32(id))
	for i := 4; i < 4+size/2; i += 8 {
		binary.NativeEndian.PutUint64(scratch[:], random.Uint64())
		copy(payload[i:4+size/2], scratch[:])
	}
	if content == OTLPJSON {
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

// recordID returns the id of a record that Record made, and whether it is one with content of size bytes.
func recordID(content Content, record []byte, size int) (id int, known bool) {
	if content == OTLPJSON {
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
	return id, bytes.Equal(record, newRecord(content, id, size))
}

// encodeRecord returns the bytes of a record in a file.
func encodeRecord(t testing.TB, format Format, record []byte) []byte {
	encoded, err := new(encoder).encode(format, record)
	require.NoError(t, err)
	return slices.Concat(encoded...)
}

// fileOf returns the bytes of a file with the records 1 to n.
func fileOf(t testing.TB, format Format, n, size int) []byte {
	data, _ := fileWithEnds(t, format, n, size)
	return data
}

// fileWithEnds returns the bytes of a file with the records 1 to n, and where each of them ends.
func fileWithEnds(t testing.TB, format Format, n, size int) (data []byte, ends []int) {
	for id := 1; id <= n; id++ {
		data = append(data, encodeRecord(t, format, newRecord(format.Content, id, size))...)
		ends = append(ends, len(data))
	}
	return data, ends
}

// separable reports whether the next record can be found after a damaged one.
func separable(format Format) bool {
	return format.Compression != None || format.Content == OTLPJSON
}

// readDamaged returns the ids of the records that are as they were made, the number
// of others, and the reports.
func readDamaged(t testing.TB, data []byte, format Format, size int) (ids []int, changed int, reports []*DamageError) {
	r := NewReader(bytes.NewReader(data), int64(len(data)), format, MaxRecordSize)
	defer r.Close()
	last := int64(0)
	for {
		record, err := r.Next()
		var damage *DamageError
		switch {
		case errors.Is(err, io.EOF):
			require.Equal(t, int64(len(data)), r.Offset())
			return ids, changed, reports
		case errors.As(err, &damage):
			require.Equal(t, last, damage.Offset)
			require.Equal(t, r.Offset(), damage.Offset+damage.Length)
			require.ErrorContains(t, damage, fmt.Sprintf("damaged at byte %d: ", damage.Offset))
			require.ErrorContains(t, damage, fmt.Sprintf("skipped %d bytes", damage.Length))
			if !separable(format) {
				require.Equal(t, int64(len(data)), r.Offset(), "the file is read up to the damage")
			}
			reports = append(reports, damage)
		default:
			require.NoError(t, err)
			if id, known := recordID(format.Content, record, size); known {
				ids = append(ids, id)
			} else {
				changed++
			}
		}
		require.Greater(t, r.Offset(), last, "it goes on")
		last = r.Offset()
	}
}
