// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func TestReadAllReservesWhatArrives(t *testing.T) {
	limit := NewInFlight(1<<20, 0)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	for _, expected := range []int64{-1, int64(len(data)), 5, 1 << 40} {
		held := limit.Reserve()
		got, err := ReadAll(t.Context(), bytes.NewReader(data), expected, held)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		assert.GreaterOrEqual(t, held.Held(), int64(cap(got)))
		assert.Less(t, held.Held(), int64(3*len(data)))
		held.Release()
	}

	// Announced, but never sent.
	held := limit.Reserve()
	_, err := ReadAll(t.Context(), bytes.NewReader(data[:10]), 1<<40, held)
	require.NoError(t, err)
	assert.EqualValues(t, minBuffer, held.Held())
	held.Release()

	held = NewInFlight(50_000, 0).Reserve()
	_, err = ReadAll(t.Context(), bytes.NewReader(data), -1, held)
	require.NoError(t, err, "alone it may exceed the limit")
}

func TestDecompressReservesTheResult(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 30)
	for name, body := range map[string][]byte{
		"plain": data,
		"gzip":  profiletest.Gzip(t, data),
		"zstd":  profiletest.Zstd(t, data),
		"both":  profiletest.Gzip(t, profiletest.Zstd(t, data)),
	} {
		held := NewInFlight(1<<20, 0).Reserve()
		require.NoError(t, held.Resize(t.Context(), int64(cap(body))))
		got, err := Decompress(t.Context(), body, 1<<20, held)
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		assert.EqualValues(t, cap(got), held.Held(), name)
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
		held := NewInFlight(1<<30, 0).Reserve()
		got, err := Decompress(t.Context(), body, len(data), held)
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		_, err = Decompress(t.Context(), body, len(data)-1, held)
		var tooLarge *pproftranslator.LimitError
		assert.ErrorAs(t, err, &tooLarge, name)
	}
}
