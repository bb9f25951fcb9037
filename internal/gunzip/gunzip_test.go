// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func reserveAny(int64) error { return nil }

// compress returns content as one member of a level.
func compress(t testing.TB, content []byte, level int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, level)
	require.NoError(t, err)
	_, err = w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// contents has what compresses to blocks of all types, with long and short codes and distances.
func contents() [][]byte {
	r := profiletest.NewRand(1)
	random := make([]byte, 200_000)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	skewed := make([]byte, 100_000) // codes of up to 15 bits
	for i := range skewed {
		skewed[i] = byte(r.ExpFloat64() * 6)
	}
	all := [][]byte{nil, []byte("a"), random, skewed, bytes.Repeat([]byte("a"), 100_000), bytes.Repeat(random[:1000], 40), bytes.Repeat(random[:32768], 3)}
	for distance := range 20 {
		all = append(all, bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz")[:distance+1], 500))
	}
	for _, w := range profiletest.Workloads()[:3] {
		var plain bytes.Buffer
		_ = w.Pprof(1).WriteUncompressed(&plain) // a buffer takes everything
		all = append(all, plain.Bytes())
	}
	return all
}

func TestDecompressesAllLevels(t *testing.T) {
	for i, content := range contents() {
		for level := gzip.HuffmanOnly; level <= gzip.BestCompression; level++ {
			data := compress(t, content, level)
			got, err := Decompress(data, 1<<30, reserveAny)
			require.NoError(t, err, "content %d, level %d", i, level)
			require.True(t, bytes.Equal(content, got), "content %d, level %d", i, level)
			assert.Equal(t, len(content), Estimate(data))
		}
	}
}

func TestDecompressesAllMembers_R2(t *testing.T) {
	var data, want []byte
	for _, content := range contents()[:10] {
		data, want = append(data, compress(t, content, gzip.BestSpeed)...), append(want, content...)
	}
	got, err := Decompress(data, len(want), reserveAny)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
	_, err = Decompress(data, len(want)-1, reserveAny)
	assert.ErrorIs(t, err, ErrLimit)
}

func TestSkipsOptionalHeaderFields(t *testing.T) {
	content := []byte("content")
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Name, w.Comment, w.Extra = "name", "comment", bytes.Repeat([]byte{0}, 300)
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	got, err := Decompress(out.Bytes(), 100, reserveAny)
	require.NoError(t, err)
	assert.Equal(t, content, got)
}

func TestHeaderChecksum(t *testing.T) {
	plain := compress(t, []byte("content"), 1)
	header := append([]byte{}, plain[:headerSize]...)
	header[3] |= flagHeaderCRC
	sum := crc32.ChecksumIEEE(header)
	data := append(append(header, byte(sum), byte(sum>>8)), plain[headerSize:]...)
	sameAsStandardLibrary(t, data)
	data[headerSize]++
	sameAsStandardLibrary(t, data)
}

// Limits are exact, and no more than the limit is allocated.
func TestLimit_R2(t *testing.T) {
	for _, size := range []int{0, 1, 5000, 100_000} {
		content := bytes.Repeat([]byte("ab"), size)
		for level := range 3 {
			data := compress(t, content, level)
			data = append(data, compress(t, nil, 1)...) // the last member does not state the size
			most := int64(0)
			got, err := Decompress(data, len(content), func(bytes int64) error {
				most = max(most, bytes)
				return nil
			})
			require.NoError(t, err)
			assert.Len(t, got, len(content))
			assert.LessOrEqual(t, most, int64(2*len(content)+2*minOutput))
			if size > 0 {
				_, err = Decompress(data, len(content)-1, reserveAny)
				assert.ErrorIs(t, err, ErrLimit)
			}
		}
	}
}

// A decompression that may not have more memory ends with the error of reserve.
func TestReserves(t *testing.T) {
	data := compress(t, bytes.Repeat([]byte("a"), 100_000), 1)
	full := errors.New("full")
	_, err := Decompress(data, 1<<20, func(bytes int64) error {
		assert.EqualValues(t, 100_000+slack, bytes)
		return full
	})
	assert.Equal(t, full, err)
	data = append(data, compress(t, nil, 1)...)
	_, err = Decompress(data, 1<<20, func(bytes int64) error {
		if bytes > 10_000 {
			return full
		}
		return nil
	})
	assert.Equal(t, full, err)
}

// sameAsStandardLibrary checks that compress/gzip gives the same content, or also an error.
func sameAsStandardLibrary(t *testing.T, data []byte) {
	t.Helper()
	const limit = 1 << 20
	got, err := Decompress(data, limit, reserveAny)
	var want []byte
	r, wantErr := gzip.NewReader(bytes.NewReader(data))
	if wantErr == nil {
		want, wantErr = io.ReadAll(io.LimitReader(r, limit+1))
	}
	switch {
	case len(want) > limit:
		require.Error(t, err)
	case wantErr != nil:
		require.Error(t, err, wantErr)
		require.NotErrorIs(t, err, ErrLimit)
	default:
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
	}
}

// withTrailer returns a member whose checksum is that of the blocks at the start of data, if they
// are valid.
func withTrailer(data []byte) []byte {
	blocks := bytes.NewReader(data)
	content, err := io.ReadAll(io.LimitReader(flate.NewReader(blocks), 1<<20))
	if err == nil {
		data = data[:len(data)-blocks.Len()]
	}
	member := append([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}, data...)
	member = binary.LittleEndian.AppendUint32(member, crc32.ChecksumIEEE(content))
	return binary.LittleEndian.AppendUint32(member, uint32(len(content)))
}

// small has a member for each type of block.
func small(t testing.TB) (all [][]byte) {
	t.Helper()
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog, again and again; ", 5))
	var fixed bytes.Buffer
	w, err := flate.NewWriter(&fixed, 9)
	require.NoError(t, err)
	_, err = w.Write([]byte("aaaaaaaaaa"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for level := gzip.HuffmanOnly; level <= gzip.BestCompression; level++ {
		all = append(all, compress(t, text, level))
	}
	return append(all, compress(t, []byte("aaaaaaaaaa"), 9), append(compress(t, text[:20], 0), compress(t, text[:70], 9)...))
}

func TestPrefixesAndFlippedBits_R1(t *testing.T) {
	inputs := 0
	for _, data := range small(t) {
		for n := range data {
			sameAsStandardLibrary(t, data[:n])
		}
		for i := range len(data) * 8 {
			flipped := bytes.Clone(data)
			flipped[i/8] ^= 1 << (i % 8)
			sameAsStandardLibrary(t, flipped)
			if i/8 >= headerSize && i/8 < len(data)-trailerSize {
				sameAsStandardLibrary(t, withTrailer(flipped[headerSize:]))
			}
		}
		sameAsStandardLibrary(t, append(bytes.Clone(data), 0))
		inputs += 9 * len(data)
	}
	profiletest.Injected(t, fmt.Sprintf("%d damaged gzip members", inputs))
}

func FuzzDecompress(f *testing.F) {
	for _, data := range small(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sameAsStandardLibrary(t, data)
		if len(data) > headerSize {
			sameAsStandardLibrary(t, withTrailer(data[headerSize:]))
		}
	})
}
