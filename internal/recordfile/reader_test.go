// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// TestReaderReportsFlippedBytes_E9 changes each byte of a file. Of a compressed one at most
// one record is lost, of lines as well unless the byte was a line feed. Of a plain one all records before
// the damage are read, and the error says where it is and how many bytes follow.
func TestReaderReportsFlippedBytes_E9(t *testing.T) {
	const n = 6
	size := profiletest.Rounds(t, 600, 10_000) / n
	forEachFormat(t, func(t *testing.T, format Format) {
		t.Parallel()
		random := rand.New(rand.NewPCG(profiletest.Seed(t), 0))
		records, readable, altered := 0, 0, 0
		whole, ends := fileWithEnds(t, format, n, size)
		for at := range whole {
			data := slices.Clone(whole)
			flip := byte(1 + random.IntN(255))
			data[at] ^= flip
			ids, changed, reports := readDamaged(t, data, format, size)
			if format.Compression == None {
				requireReadUpTo(t, format, at, ends, ids, changed, reports)
			} else {
				require.GreaterOrEqual(t, len(ids), n-1, "byte %d xor %#x: %v", at, flip, reports)
				require.Zero(t, changed, "a checksum is wrong")
			}
			if separable(format) && whole[at] != '\n' {
				require.GreaterOrEqual(t, len(ids)+changed, n-1, "byte %d xor %#x: %v", at, flip, reports)
			}
			require.True(t, slices.IsSorted(ids))
			if len(ids) < n && changed == 0 {
				require.NotEmpty(t, reports, "byte %d xor %#x", at, flip)
			}
			records, readable, altered = records+n, readable+len(ids)+changed, altered+changed
		}
		fault := fmt.Sprintf("%d flipped bytes, %d changed records without a checksum", len(whole), altered)
		profiletest.Account(t, fault, records, readable, records-readable)
	})
}

// requireReadUpTo requires that all records of a plain file before the byte at are read, and
// that the damage is reported if not all others are.
func requireReadUpTo(t *testing.T, format Format, at int, ends, ids []int, changed int, reports []*DamageError) {
	t.Helper()
	before, start := 0, 0
	for ends[before] <= at {
		before, start = before+1, ends[before]
		require.Equal(t, before, ids[before-1], "byte %d", at)
	}
	if len(reports) == 0 {
		require.Len(t, ends, len(ids)+changed, "byte %d", at)
		return
	}
	if separable(format) && len(reports) == 2 { // a line feed divides a line in two
		require.Equal(t, reports[0].Offset+reports[0].Length, reports[1].Offset, "byte %d", at)
		reports = reports[:1]
	}
	require.Len(t, reports, 1, "byte %d", at)
	require.GreaterOrEqual(t, reports[0].Offset, int64(start), "byte %d", at)
	if changed == 0 && !separable(format) {
		require.Len(t, ids, before, "byte %d", at)
	}
	if changed == 0 {
		require.Equal(t, int64(start), reports[0].Offset, "byte %d", at)
	}
}

func TestGarbageBetweenRecords(t *testing.T) {
	const size = 100
	forEachFormat(t, func(t *testing.T, format Format) {
		data, ends := fileWithEnds(t, format, 4, size)
		for name, garbage := range map[string][]byte{
			"zeros":  make([]byte, 100_000),
			"random": randomBytes(200_000),
			"magic":  bytes.Repeat([]byte(string(zstdMagic)+string(gzipMagic)), 500),
		} {
			if format.Content == OTLPJSON && format.Compression == None {
				garbage = append(bytes.ReplaceAll(garbage, []byte("\n"), []byte{0}), '\n')
			}
			dirty := slices.Concat(data[:ends[1]], garbage, data[ends[1]:])
			ids, changed, reports := readDamaged(t, dirty, format, size)
			want, skipped := []int{1, 2, 3, 4}, len(garbage)
			if !separable(format) {
				want, skipped = []int{1, 2}, len(dirty)-ends[1]
			}
			assert.Equal(t, want, ids, name)
			assert.Zero(t, changed, name)
			require.Len(t, reports, 1, name)
			assert.Equal(t, int64(ends[1]), reports[0].Offset)
			assert.Equal(t, int64(skipped), reports[0].Length)
		}
	})
}

func TestReaderIsBounded(t *testing.T) {
	const size = 1000
	forEachFormat(t, func(t *testing.T, format Format) {
		for _, tt := range []struct{ max, records int }{{len(newRecord(format.Content, 1, size)), 1}, {len(newRecord(format.Content, 1, size)) - 1, 0}} {
			data := fileOf(t, format, 1, size)
			r := NewReader(bytes.NewReader(data), int64(len(data)), format, tt.max)
			records := 0
			for _, err := range r.All() {
				if err == nil {
					records++
				}
			}
			assert.Equal(t, tt.records, records)
			r.Close()
		}
	})
}

// TestBombs: small files that would need much memory.
func TestBombs(t *testing.T) {
	big := append(binary.AppendUvarint([]byte{0x0a}, 16<<20), make([]byte, 16<<20)...)
	for _, compression := range []Compression{Gzip, Zstd} {
		bomb := encodeRecord(t, Format{Content: OTLPProto, Compression: compression}, big)
		require.Less(t, len(bomb), 1<<20)
		requireLittleMemory(t, slices.Clone(bomb), Format{Content: OTLPProto, Compression: compression})
	}
	// A header that promises a gigabyte: window descriptor, 8 bytes of content size.
	encoder, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	require.NoError(t, err)
	defer func() { require.NoError(t, encoder.Close()) }()
	frame := encoder.EncodeAll(make([]byte, 1<<17), nil)
	at := bytes.Index(frame, []byte{0, 0, 2, 0}) // 4 bytes of content size
	require.Positive(t, at)
	frame[at+3] = 0x3f
	requireLittleMemory(t, frame, Format{Content: OTLPProto, Compression: Zstd})
	// Lengths that promise more than there is.
	requireLittleMemory(t, []byte{0x3f, 0xff, 0xff, 0xff, 0x0a, 0x00}, Format{Content: OTLPProto})
}

func requireLittleMemory(t *testing.T, data []byte, format Format) {
	allocated := profiletest.AllocatedBy(func() {
		r := NewReader(bytes.NewReader(data), int64(len(data)), format, 1<<20)
		_, err := r.Next()
		var damage *DamageError
		require.ErrorAs(t, err, &damage)
		_, err = r.Next()
		require.ErrorIs(t, err, io.EOF)
		r.Close()
	})
	assert.Less(t, allocated, uint64(24<<20))
}

// TestReaderOfBrokenDisk: a disk on which all reads fail is not a damaged file, and no reason to try forever.
func TestReaderOfBrokenDisk(t *testing.T) {
	forEachFormat(t, func(t *testing.T, format Format) {
		r := NewReader(failingReader{}, int64(len(fileOf(t, format, 1, 500_000))), format, MaxRecordSize)
		_, err := r.Next()
		require.Error(t, err)
		var damage *DamageError
		require.NotErrorAs(t, err, &damage, "a failing disk is not a damaged file")
		require.NotErrorIs(t, err, io.EOF)
		r.Close()
	})
}

type failingReader struct{}

func (failingReader) ReadAt([]byte, int64) (int, error) { return 0, syscall.EIO }

func FuzzReader(f *testing.F) {
	for i, format := range allFormats {
		f.Add(fileOf(f, format, 2, 20), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		format := allFormats[int(which)%len(allFormats)]
		r := NewReader(bytes.NewReader(data), int64(len(data)), format, 1<<20)
		defer r.Close()
		last := int64(0)
		for record, err := range r.All() {
			var damage *DamageError
			if err != nil {
				require.ErrorAs(t, err, &damage)
			} else {
				encodeRecord(t, format, record)
			}
			require.Greater(t, r.Offset(), last)
			last = r.Offset()
		}
		require.Equal(t, int64(len(data)), r.Offset())
	})
}

func TestRecordsAfterOneThatIsTooLargeAreRead_V8(t *testing.T) {
	field := func(n int) []byte { return append([]byte{2<<3 | wire.BytesType, byte(n)}, make([]byte, n)...) }
	message := func(n int) []byte { return append(field(n), field(3)...) }
	var file []byte
	for _, n := range []int{5, 100, 7} {
		record := message(n)
		file = append(binary.BigEndian.AppendUint32(file, uint32(len(record))), record...)
	}
	reader := NewReader(bytes.NewReader(file), int64(len(file)), Format{Content: OTLPProto}, 50)
	var sizes []int
	for record, err := range reader.All() {
		if err != nil {
			require.ErrorContains(t, err, "more than 50")
		}
		sizes = append(sizes, len(record))
	}
	assert.Equal(t, []int{len(message(5)), 0, len(message(7))}, sizes)
}
