// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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

// contents has nothing, one byte, what does not shrink, what shrinks to a thousandth, and profiles.
func contents() [][]byte {
	random := make([]byte, 200_000)
	r := profiletest.NewRand(1)
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	all := [][]byte{nil, []byte("a"), random, bytes.Repeat([]byte("a"), 100_000)}
	for _, w := range profiletest.Workloads()[:3] {
		var plain bytes.Buffer
		_ = w.Pprof(1).WriteUncompressed(&plain) // a buffer takes everything
		all = append(all, plain.Bytes())
	}
	return all
}

func TestDecompressesAllMembers_R2(t *testing.T) {
	var all, want []byte
	for i, content := range contents() {
		data := compress(t, content, gzip.BestSpeed)
		assert.Equal(t, len(content), Estimate(data))
		got, err := Decompress(data, len(content), reserveAny)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, got), "content %d", i)
		all, want = append(all, data...), append(want, content...)
	}
	got, err := Decompress(all, len(want), reserveAny)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, got))
	_, err = Decompress(all, len(want)-1, reserveAny)
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
			assert.LessOrEqual(t, most, int64(ReaderSize+2*len(content)+2*minOutput))
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
		assert.EqualValues(t, ReaderSize+100_000+1, bytes)
		return full
	})
	assert.Equal(t, full, err)
	data = append(data, compress(t, nil, 1)...)
	_, err = Decompress(data, 1<<20, func(bytes int64) error {
		if bytes > ReaderSize+10_000 {
			return full
		}
		return nil
	})
	assert.Equal(t, full, err)
}

// sameAsStandardLibrary checks that compress/gzip gives the same content, or also an error. It accepts
// headers that are malformed.
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
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrLimit)
	case err != nil: // reserved flags, which RFC 1952 forbids
		require.ErrorContains(t, err, "header")
	default:
		require.True(t, bytes.Equal(want, got))
	}
}

func TestPrefixesAndFlippedBits_R1(t *testing.T) {
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog, again and again; ", 5))
	data := append(compress(t, text[:20], gzip.NoCompression), compress(t, text, gzip.BestCompression)...)
	for n := range data {
		sameAsStandardLibrary(t, data[:n])
	}
	for i := range len(data) * 8 {
		flipped := bytes.Clone(data)
		flipped[i/8] ^= 1 << (i % 8)
		sameAsStandardLibrary(t, flipped)
	}
	sameAsStandardLibrary(t, append(bytes.Clone(data), 0))
	profiletest.Injected(t, fmt.Sprintf("%d damaged gzip members", 9*len(data)))
}
