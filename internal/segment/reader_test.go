// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// readDamaged gives the ids of the records that are as they were made, the number
// of others, and what was reported.
func readDamaged(t testing.TB, data []byte, format Format, size int) (ids []int, changed int, reports []*DamageError) {
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), format, MaxRecordSize)
	require.NoError(t, err)
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
			if format.Compression == None {
				require.Equal(t, int64(len(data)), r.Offset(), "a plain file is read up to the damage")
			}
			reports = append(reports, damage)
		default:
			require.NoError(t, err)
			if id, ok := knownRecord(format.Content, record, size); ok {
				ids = append(ids, id)
			} else {
				changed++
			}
		}
		require.Greater(t, r.Offset(), last, "it goes on")
		last = r.Offset()
	}
}

func knownRecord(content Content, record []byte, size int) (int, bool) {
	known := func(id int) bool {
		return id >= 1 && id <= 6 && bytes.Equal(record, testRecord(content, id, size))
	}
	if content != OTLPJSON {
		payload := payloadOf(record)
		if len(payload) < 4 {
			return 0, false
		}
		id := int(binary.BigEndian.Uint32(payload))
		return id, known(id)
	}
	for id := 1; id <= 6; id++ {
		if bytes.Contains(record[:20], fmt.Appendf(nil, `"id":%d,`, id)) {
			return id, known(id)
		}
	}
	return 0, false
}

// TestReaderReportsFlippedBytes_E9 changes each byte of a file. Of a compressed one at most
// one record is lost. Of a plain one all records before the damage are read, and the error
// says where it is and how many bytes follow.
func TestReaderReportsFlippedBytes_E9(t *testing.T) {
	const n = 6
	size := profiletest.Rounds(t, 600, 10_000) / n
	for _, format := range allFormats[:6] {
		t.Run(format.testName(), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(profiletest.Seed(t), 0))
			var flipped flips
			whole, ends := fileWithEnds(t, format, n, size)
			for _, read := range []Format{format, {Content: format.Content, Compression: format.Compression}} {
				for at := range whole {
					data := slices.Clone(whole)
					flip := byte(1 + random.IntN(255))
					data[at] ^= flip
					ids, changed, reports := readDamaged(t, data, read, size)
					if format.Compression == None {
						requireReadUpTo(t, at, ends, ids, changed, reports)
					} else {
						require.GreaterOrEqual(t, len(ids), n-1, "byte %d xor %#x: %v", at, flip, reports)
						require.Zero(t, changed, "a checksum is wrong")
					}
					require.True(t, slices.IsSorted(ids))
					if len(ids) < n && changed == 0 {
						require.NotEmpty(t, reports, "byte %d xor %#x", at, flip)
					}
					flipped.add(n, ids, changed)
				}
			}
			flipped.account(t)
		})
	}
}

// requireReadUpTo requires that all records of a plain file before the byte at are read, and
// that the damage is reported if not all others are.
func requireReadUpTo(t *testing.T, at int, ends, ids []int, changed int, reports []*DamageError) {
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
	require.Len(t, reports, 1, "byte %d", at)
	require.GreaterOrEqual(t, reports[0].Offset, int64(start), "byte %d", at)
	if changed == 0 {
		require.Len(t, ids, before, "byte %d", at)
		require.Equal(t, int64(start), reports[0].Offset, "byte %d", at)
	}
}

// flips accounts for the records of files of which one byte each was changed.
type flips struct{ files, records, readable, changed int }

// add takes a file of n records. Those that are not there were reported; those that
// have no checksum may be changed instead.
func (f *flips) add(n int, ids []int, changed int) {
	f.files++
	f.records += n
	f.readable += len(ids) + changed
	f.changed += changed
}

func (f *flips) account(t *testing.T) {
	t.Helper()
	profiletest.Account(t, fmt.Sprintf("%d flipped bytes, %d changed records without a checksum", f.files, f.changed), f.records, f.readable, f.records-f.readable)
}

func TestTornTail(t *testing.T) {
	const size, n = 80, 3
	forEachFormat(t, func(t *testing.T, format Format) {
		if format.Bare && format.Compression == None {
			t.Skip("bare messages have no end of their own")
		}
		data, ends := fileWithEnds(t, format, n, size)
		for cut := range data {
			ids, changed, reports := readDamaged(t, data[:cut], format, size)
			whole := 0
			for whole < n && ends[whole] <= cut {
				whole++
			}
			require.Len(t, ids, whole)
			require.Zero(t, changed)
			if cut == 0 || whole > 0 && ends[whole-1] == cut {
				require.Empty(t, reports)
			} else {
				require.Len(t, reports, 1)
				require.Equal(t, int64(cut), reports[0].Offset+reports[0].Length, "up to the end")
			}
		}
	})
}

func TestGarbageBetweenRecords(t *testing.T) {
	const size = 100
	random := rand.New(rand.NewPCG(1, 2))
	for _, format := range allFormats[:6] {
		t.Run(format.testName(), func(t *testing.T) {
			data, ends := fileWithEnds(t, format, 4, size)
			for name, garbage := range map[string][]byte{
				"zeros": make([]byte, 100_000),
				"random": func() []byte {
					b := make([]byte, 200_000)
					for i := range b {
						b[i] = byte(random.Uint32())
					}
					return b
				}(),
				"magic": bytes.Repeat(append(slices.Clone(zstdMagic), gzipMagic...), 500),
			} {
				if format.Content == OTLPJSON && format.Compression == None {
					garbage = append(bytes.ReplaceAll(garbage, []byte{lineFeed}, []byte{0}), lineFeed)
				}
				dirty := slices.Concat(data[:ends[1]], garbage, data[ends[1]:])
				ids, changed, reports := readDamaged(t, dirty, format, size)
				want, skipped := []int{1, 2, 3, 4}, len(garbage)
				if format.Compression == None {
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
}

// TestBareIsRecognised: the names of bare files are those of others.
func TestBareIsRecognised(t *testing.T) {
	for _, format := range allFormats[6:9] {
		for _, size := range []int{0, 5, 100, 10_000, 300_000} {
			data := fileOf(t, format, 1, size)
			ids, changed, reports := readDamaged(t, data, Format{Content: OTLPProto, Compression: format.Compression}, size)
			require.Equal(t, []int{1}, ids)
			require.Zero(t, changed)
			require.Empty(t, reports)
		}
	}
}

func TestReaderIsBounded(t *testing.T) {
	const size = 1000
	forEachFormat(t, func(t *testing.T, format Format) {
		for _, tt := range []struct{ max, records int }{{len(testRecord(format.Content, 1, size)), 1}, {len(testRecord(format.Content, 1, size)) - 1, 0}} {
			data := fileOf(t, format, 1, size)
			r, err := NewReader(bytes.NewReader(data), int64(len(data)), format, tt.max)
			require.NoError(t, err)
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
		e, err := encode(Format{Content: OTLPProto, Compression: compression}, big)
		require.NoError(t, err)
		require.Less(t, len(e.chunks[0]), 1<<20)
		requireLittleMemory(t, slices.Clone(e.chunks[0]), Format{Content: OTLPProto, Compression: compression})
		e.release()
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
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := NewReader(bytes.NewReader(data), int64(len(data)), format, 1<<20)
	require.NoError(t, err)
	_, err = r.Next()
	var damage *DamageError
	require.ErrorAs(t, err, &damage)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	r.Close()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(24<<20))
}

func TestReaderOfBrokenDisk(t *testing.T) {
	forEachFormat(t, func(t *testing.T, format Format) {
		data := fileOf(t, format, 1, 500_000)
		f := &faults{from: 1, to: 100}
		r, err := NewReader(&failingReader{bytes.NewReader(data), f}, int64(len(data)), format, MaxRecordSize)
		require.NoError(t, err)
		_, err = r.Next()
		require.Error(t, err)
		var damage *DamageError
		require.NotErrorAs(t, err, &damage, "a failing disk is not a damaged file")
		require.NotErrorIs(t, err, io.EOF)
		r.Close()
	})
}

type failingReader struct {
	from   io.ReaderAt
	faults *faults
}

func (r *failingReader) ReadAt(p []byte, at int64) (int, error) {
	if err := r.faults.next(); err != nil {
		return 0, err
	}
	return r.from.ReadAt(p, at)
}

func TestNewReaderRejectsAnUnknownFormat(t *testing.T) {
	_, err := NewReader(bytes.NewReader(nil), 0, Format{Content: "csv"}, MaxRecordSize)
	require.ErrorContains(t, err, "csv")
}

func FuzzReader(f *testing.F) {
	for i, format := range allFormats {
		f.Add(fileOf(f, format, 2, 20), uint8(i))
	}
	f.Fuzz(func(t *testing.T, data []byte, which uint8) {
		format := allFormats[int(which)%len(allFormats)]
		if which >= 128 {
			format.Bare = false
		}
		r, err := NewReader(bytes.NewReader(data), int64(len(data)), format, 1<<20)
		require.NoError(t, err)
		defer r.Close()
		last := int64(0)
		for record, err := range r.All() {
			var damage *DamageError
			if err != nil {
				require.ErrorAs(t, err, &damage)
			} else {
				require.NoError(t, format.Content.checkRecord(record))
			}
			require.Greater(t, r.Offset(), last)
			last = r.Offset()
		}
		require.Equal(t, int64(len(data)), r.Offset())
	})
}
