// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// heapProfile is a record of samples as a heap profile has them, most of value 0:
// between two of them there often is what reads as a length.
func heapProfile(t testing.TB, seed uint64, samples int) []byte {
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
	record, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(t, err)
	return record
}

func prefixed(records ...[]byte) []byte {
	var file []byte
	for _, record := range records {
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(record))), record...)
	}
	return file
}

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
	r, err := NewReader(read, int64(len(file)), Format{Content: content}, MaxRecordSize)
	require.NoError(t, err)
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
	good := testRecord(OTLPProto, 1, 100)
	files, read := 0, 0
	seed := profiletest.Seed(t)
	for round := range profiletest.Rounds(t, 1, 100) {
		heap := heapProfile(t, seed+uint64(round), 120_000)
		for _, part := range []int{2, 3, 8} {
			torn := prefixed(good, heap)
			records, _ := readRecords(t, torn[:len(torn)-len(heap)/part], OTLPProto)
			require.Equal(t, [][]byte{good}, records, "round %d: torn by 1/%d", round, part)
			files, read = files+1, read+len(records)
		}
		for bit := range 32 {
			flipped := prefixed(good, heap, good)
			flipped[len(good)+prefixSize+bit/8] ^= 1 << (bit % 8)
			records, _ := readRecords(t, flipped, OTLPProto)
			require.Equal(t, [][]byte{good}, records, "round %d: bit %d", round, bit)
			files, read = files+1, read+len(records)
		}
	}
	profiletest.Account(t, fmt.Sprintf("%d torn records and flipped lengths", files), files, read, 0)
}

// TestTornHeapProfileIsCutOff_E2 when a leftover is repaired.
func TestTornHeapProfileIsCutOff_E2(t *testing.T) {
	good := testRecord(OTLPProto, 1, 100)
	heap := heapProfile(t, 1, 120_000)
	file := prefixed(good, heap)
	file = file[:len(file)-len(heap)/8]
	dir := t.TempDir()
	name := Name{Sequence: 1, Format: Format{Content: OTLPProto}, Partial: true}
	require.NoError(t, os.WriteFile(filepath.Join(dir, name.String()), file, 0o600))
	w := openTestWriter(t, dir, Options{Format: Format{Content: OTLPProto}})
	require.NoError(t, w.Close())
	finished, err := os.ReadFile(filepath.Join(dir, list(t, dir)[0]))
	require.NoError(t, err)
	assert.Equal(t, prefixed(good), finished)
	profiletest.Account(t, "1 torn records", 1, len(readAll(t, dir, 100)), 0)
}
