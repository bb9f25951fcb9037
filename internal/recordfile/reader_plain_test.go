// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// countingReader counts what is read.
type countingReader struct {
	io.ReaderAt
	calls, bytes int
}

func (r *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, at)
	r.calls++
	r.bytes += n
	return n, err
}

// readRecords gives copies of the records, and what was read for them.
func readRecords(t testing.TB, file []byte, content Content) (records [][]byte, read *countingReader) {
	read = &countingReader{ReaderAt: bytes.NewReader(file)}
	r := NewReader(read, int64(len(file)), Format{Content: content}, MaxRecordSize)
	defer r.Close()
	for record, err := range r.All() {
		if err != nil {
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			continue
		}
		records = append(records, bytes.Clone(record))
	}
	return records, read
}

// TestReaderInventsNoRecord_E9: samples after a torn write or a flipped bit of a length are
// not taken for records.
func TestReaderInventsNoRecord_E9(t *testing.T) {
	good := newRecord(OTLPProto, 1, 100)
	files, read := 0, 0
	seed := profiletest.Seed(t)
	for round := range profiletest.Rounds(t, 1, 100) {
		heap := heapProfile(t, seed+uint64(round), 120_000)
		for _, part := range []int{2, 3, 8} {
			torn := profiletest.Prefixed(good, heap)
			records, _ := readRecords(t, torn[:len(torn)-len(heap)/part], OTLPProto)
			require.Equal(t, [][]byte{good}, records, "round %d: torn by 1/%d", round, part)
			files, read = files+1, read+len(records)
		}
		for bit := range 32 {
			flipped := profiletest.Prefixed(good, heap, good)
			flipped[len(good)+4+bit/8] ^= 1 << (bit % 8)
			records, _ := readRecords(t, flipped, OTLPProto)
			require.Equal(t, [][]byte{good}, records, "round %d: bit %d", round, bit)
			files, read = files+1, read+len(records)
		}
	}
	profiletest.Account(t, fmt.Sprintf("%d torn records and flipped lengths", files), files, read, 0)
}
