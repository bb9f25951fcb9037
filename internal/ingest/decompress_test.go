// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func TestReadAllReservesWhatArrives(t *testing.T) {
	limit := NewInFlight(4 << 20)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	for _, expected := range []int64{-1, int64(len(data)), 5} {
		held := limit.Reserve(0)
		got, err := ReadAll(t.Context(), bytes.NewReader(data), expected, held)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		assert.EqualValues(t, cap(got), limit.InUse())
		held.Release()
	}

	// Announced, but never sent.
	held := limit.Reserve(0)
	_, err := ReadAll(t.Context(), bytes.NewReader(data[:10]), int64(len(data)), held)
	require.NoError(t, err)
	assert.EqualValues(t, minBuffer, limit.InUse())
	held.Release()

	// A body may have a sixteenth of the limit. Otherwise it is rejected, at once if its length is known.
	for _, size := range []int64{256 << 10, 256<<10 + 1} {
		for _, expected := range []int64{-1, size} {
			held := limit.Reserve(0)
			read := &io.LimitedReader{R: zeros{}, N: size}
			_, err := ReadAll(t.Context(), read, expected, held)
			if size == limit.maxBody() {
				require.NoError(t, err)
			} else {
				requireTooLarge(t, err)
				assert.Equal(t, expected > 0, read.N == size)
			}
			held.Release()
		}
	}
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// The memory of an endless body is bounded, with that of its old and new buffer.
func TestReadAllOfAnEndlessBody_M1(t *testing.T) {
	limit := NewInFlight(64 << 20)
	held := limit.Reserve(0)
	before := allocated()
	_, err := ReadAll(t.Context(), zeros{}, -1, held)
	requireTooLarge(t, err)
	assert.LessOrEqual(t, limit.InUse(), int64(8<<20))
	assert.Less(t, allocated()-before, uint64(20<<20), "all buffers in turn")
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func TestDecompressReservesTheResult(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 30)
	for name, body := range map[string][]byte{
		"plain": data,
		"gzip":  profiletest.Gzip(t, data),
		"zstd":  profiletest.Zstd(t, data),
		"both":  profiletest.Gzip(t, profiletest.Zstd(t, data)),
	} {
		held := int64(0)
		got, err := Decompress(body, 1<<20, func(bytes int64) error {
			held = bytes
			return nil
		})
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		if name == "plain" {
			assert.Zero(t, held)
		} else {
			assert.EqualValues(t, cap(got), held, name)
		}
	}
}

// Limits are exact: the last byte that fits, and the first that does not.
func TestDecompressLimitIsExact(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for name, body := range map[string][]byte{
		"plain":       data,
		"gzip":        profiletest.Gzip(t, data),
		"zstd":        profiletest.Zstd(t, data),
		"zstd stream": profiletest.ZstdStream(t, data),
	} {
		got, err := Decompress(body, len(data), reserveAny)
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		_, err = Decompress(body, len(data)-1, reserveAny)
		var tooLarge *pproftranslator.LimitError
		assert.ErrorAs(t, err, &tooLarge, name)
	}
}

func reserveAny(int64) error { return nil }
