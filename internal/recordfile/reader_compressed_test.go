// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// countingReader counts what is read.
type countingReader struct {
	io.ReaderAt
	bytes int
}

func (r *countingReader) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, at)
	r.bytes += n
	return n, err
}

// TestCompressedReadingIsLinear_E9: what is read for a torn compressed record is in
// proportion to the file, however many heads of frames or members are in it.
func TestCompressedReadingIsLinear_E9(t *testing.T) {
	const (
		size   = 2 << 20
		behind = 6
	)
	noise := randomBytes(size)
	for _, tt := range []struct {
		name        string
		compression Compression
		planted     []byte
	}{
		{"gzip", Gzip, gzipHeads(noise)},
		{"zstd", Zstd, zstdHeads(noise)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			format := Format{Content: OTLPProto, Compression: tt.compression}
			head := encodeRecord(t, format, newRecord(OTLPProto, 1, 100))
			file := append(head[:len(head)-1], tt.planted...) // torn
			for id := range behind {
				file = append(file, encodeRecord(t, format, newRecord(OTLPProto, id+2, 100<<10))...)
			}
			read := &countingReader{ReaderAt: bytes.NewReader(file)}
			r := NewReader(read, int64(len(file)), format, MaxRecordSize)
			found := 0
			for _, err := range r.All() {
				if err == nil {
					found++
					continue
				}
				var damaged *DamageError
				require.ErrorAs(t, err, &damaged)
			}
			r.Close()
			assert.Less(t, read.bytes, 8*len(file)+32<<20)
			assert.GreaterOrEqual(t, found, behind-1)
			profiletest.Account(t, "heads of frames in a torn record", behind, found, behind-found)
		})
	}
}

// TestDamagedNeighbours_E9: each of many damaged records one behind the other costs no
// other one.
func TestDamagedNeighbours_E9(t *testing.T) {
	for _, format := range []Format{{OTLPProto, Gzip}, {OTLPProto, Zstd}, {OTLPJSON, None}} {
		var file []byte
		const records, whole = 40, 5
		for id := range records {
			record := encodeRecord(t, format, newRecord(format.Content, id+1, 100<<10))
			if id%whole != 0 {
				record[len(record)-2] ^= 0x55 // of the checksum, the length of gzip, or the end of JSON
			}
			file = append(file, record...)
		}
		r := NewReader(bytes.NewReader(file), int64(len(file)), format, MaxRecordSize)
		found := 0
		for _, err := range r.All() {
			if err == nil {
				found++
			}
		}
		r.Close()
		require.Equal(t, records/whole, found, formatName(format))
	}
}

// gzipHeads puts the begin of a member every few bytes.
func gzipHeads(noise []byte) []byte {
	out := bytes.Clone(noise)
	for at := 0; at+32 < len(out); at += 64 {
		copy(out[at:], string(gzipMagic)+"\x00\x00\x00\x00\x00\x00\xff")
	}
	return out
}

// zstdHeads puts the begin of a frame every few bytes, each of which goes on to the
// end by way of the same blocks.
func zstdHeads(noise []byte) []byte {
	const block, header = 128 << 10, 3
	out := bytes.Clone(noise)
	raw := func(at, size int) {
		out[at], out[at+1], out[at+2] = byte(size<<3), byte(size<<3>>8), byte(size<<3>>16)
	}
	for begin := 0; begin+block <= len(out); begin += block {
		raw(begin, block-header)
		for at := begin + 64; at < begin+block-64; at += 2048 {
			head := append([]byte(string(zstdMagic)), 0x04, 0x58) // with a checksum
			copy(out[at:], head)
			raw(at+len(head), block-(at-begin)-len(head)-header)
		}
	}
	return out
}
