// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

const size = 32 << 20 // bytes: 8 MiB for bodies, of which one has 4 MiB, and 24 MiB for work

func requireTooLarge(t *testing.T, err error) {
	t.Helper()
	var tooLarge *budget.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.ErrorContains(t, err, "max_in_flight")
}

// The lease holds a body, and while it grows what is beside it. It is rejected at once if its length is known.
func TestReadAllTakesTheBody_M1(t *testing.T) {
	b := budget.New(size)
	for _, test := range []struct{ length, expected, most int64 }{
		{0, 0, 0}, {100, 100, 100}, {100, -1, 64 << 10}, {64 << 10, -1, 128 << 10},
		{100_000, -1, 128 << 10}, {1_000_000, -1, 1 << 20}, {4 << 20, 4 << 20, 4 << 20}, {2_000_000, -1, 2 << 20},
	} {
		for _, wait := range []time.Duration{0, -1} {
			lease := b.Lease(wait)
			got, err := ReadAll(t.Context(), io.LimitReader(zeros{}, test.length), test.expected, lease)
			require.NoError(t, err)
			assert.Len(t, got, int(test.length))
			assert.LessOrEqual(t, test.length, b.InUse(), test)
			assert.LessOrEqual(t, b.InUse(), test.most, test)
			lease.Release()
			assert.Zero(t, b.InUse())
		}
	}
	read := &io.LimitedReader{R: zeros{}, N: size}
	_, err := ReadAll(t.Context(), read, 4<<20+1, b.Lease(0))
	requireTooLarge(t, err)
	assert.EqualValues(t, size, read.N)

	allocated := profiletest.AllocatedBy(func() { _, err = ReadAll(t.Context(), zeros{}, -1, b.Lease(0)) })
	requireTooLarge(t, err)
	assert.Less(t, allocated, uint64(8<<20), "all buffers in turn")
}

// Limits are exact: the last byte that fits, and the first that does not. The lease holds the result.
func TestDecompressLimitIsExact_R2(t *testing.T) {
	random := make([]byte, 200_000)
	for r, i := profiletest.NewRand(1), 0; i < len(random); i++ {
		random[i] = byte(r.Uint32())
	}
	for _, data := range [][]byte{random, bytes.Repeat([]byte("0123456789abcdef"), 40_000), bytes.Repeat([]byte("a"), 300_000)} {
		half := len(data) / 2
		for name, body := range map[string][]byte{
			"plain":         data,
			"gzip":          profiletest.Gzip(t, data),
			"members":       slices.Concat(profiletest.Gzip(t, data[:half]), profiletest.Gzip(t, data[half:]), profiletest.Gzip(t, nil)),
			"zstd":          profiletest.Zstd(t, data),
			"frames":        slices.Concat(profiletest.Zstd(t, data[:half]), []byte("\x50\x2a\x4d\x18\x03\x00\x00\x00abc"), profiletest.ZstdStream(t, data[half:])),
			"zstd stream":   profiletest.ZstdStream(t, data),
			"lz4":           profiletest.LZ4(t, data),
			"zstd and gzip": profiletest.Gzip(t, profiletest.Zstd(t, data[:len(data)-1000])), // not larger in between
		} {
			b := budget.New(512 << 20)
			lease := b.Lease(0)
			want := data
			if name == "zstd and gzip" {
				want = data[:len(data)-1000]
			}
			got, err := Decompress(lease, body, len(data))
			require.NoError(t, err, name)
			require.True(t, bytes.Equal(want, got), name)
			if name != "plain" {
				assert.EqualValues(t, cap(got), b.InUse(), name)
			}
			lease.Release()
			_, err = Decompress(lease, body, len(want)-1)
			var tooLarge *pproftranslator.LimitError
			require.ErrorAs(t, err, &tooLarge, name)
			assert.Zero(t, b.InUse(), name)
		}
	}
}

// A payload that states a small size does not get more memory than is free, and one that states a large one is rejected
// before it takes any.
func TestDecompressOfPayloadsThatLie_R2(t *testing.T) {
	data := bytes.Repeat([]byte("a"), 1<<20)
	small := profiletest.Gzip(t, data)
	binary.LittleEndian.PutUint32(small[len(small)-4:], 1)
	b := budget.New(size)
	lease := b.Lease(0)
	_, err := Decompress(lease, small, 4<<20)
	require.ErrorContains(t, err, "gzip: after ")
	_, err = Decompress(lease, slices.Concat(profiletest.Gzip(t, data), profiletest.Gzip(t, nil)), 4<<20)
	require.NoError(t, err)
	lease.Release()
	others := b.Lease(0)
	require.NoError(t, others.Take(23<<20))
	_, err = Decompress(lease, small, 4<<20)
	require.ErrorIs(t, err, budget.ErrFull)
	assert.EqualValues(t, 23<<20, b.InUse())
	others.Release()

	binary.LittleEndian.PutUint32(small[len(small)-4:], 4<<20+1)
	for range 2 {
		small = slices.Concat(small, small) // so that so many bytes are possible
	}
	allocated := profiletest.AllocatedBy(func() { _, err = Decompress(lease, small, 4<<20) })
	var tooLarge *pproftranslator.LimitError
	require.ErrorAs(t, err, &tooLarge)
	assert.Less(t, allocated, uint64(64<<10))
}

// Damaged zstd is an error, and the bound of its size is never less than the size.
func TestDamagedZstd_R1(t *testing.T) {
	text := bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog; "), 5)
	data := slices.Concat(profiletest.Zstd(t, text), profiletest.ZstdStream(t, text), profiletest.Zstd(t, text[:7]))
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(1<<20))
	require.NoError(t, err)
	defer decoder.Close()
	check := func(data []byte) {
		_, bound, err := zstdSize(data)
		if got, decodeErr := decoder.DecodeAll(data, nil); decodeErr == nil {
			require.NoError(t, err)
			require.LessOrEqual(t, int64(len(got)), bound)
		}
	}
	for n := range data {
		check(data[:n])
	}
	for i := range len(data) * 8 {
		flipped := bytes.Clone(data)
		flipped[i/8] ^= 1 << (i % 8)
		check(flipped)
	}
}
