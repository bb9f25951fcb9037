// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadBodyHoldsWhatHasArrived(t *testing.T) {
	budget := newBudget(1<<20, 0)
	data := bytes.Repeat([]byte("0123456789"), 10_000)
	for _, expected := range []int64{-1, int64(len(data)), 5, 1 << 40} {
		held := budget.reserve()
		got, err := readBody(t.Context(), bytes.NewReader(data), expected, held)
		require.NoError(t, err)
		assert.Equal(t, data, got)
		assert.GreaterOrEqual(t, held.held, int64(cap(got)))
		assert.Less(t, held.held, int64(3*len(data)))
		held.release()
	}

	// Announced, but never sent.
	held := budget.reserve()
	_, err := readBody(t.Context(), bytes.NewReader(data[:10]), 1<<40, held)
	require.NoError(t, err)
	assert.EqualValues(t, smallestBuffer, held.held)
	held.release()

	held = newBudget(50_000, 0).reserve()
	_, err = readBody(t.Context(), bytes.NewReader(data), -1, held)
	require.NoError(t, err, "alone it may be larger than the budget")
}

// What unpack holds at its end is the result, no more.
func TestUnpackHoldsTheResult(t *testing.T) {
	data := plain(t, samplePprof("/bin/app", 3))
	for name, body := range map[string][]byte{
		"plain": data,
		"gzip":  gzipped(t, data),
		"zstd":  zstandard(t, data),
		"both":  gzipped(t, zstandard(t, data)),
	} {
		held := newBudget(1<<20, 0).reserve()
		require.NoError(t, held.resize(t.Context(), int64(cap(body))))
		got, err := unpack(t.Context(), body, 1<<20, held)
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		assert.EqualValues(t, cap(got), held.held, name)
	}
}

// Limits are exact: the last byte that fits, and the first that does not.
func TestUnpackLimitIsExact(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for name, body := range map[string][]byte{
		"plain":       data,
		"gzip":        gzipped(t, data),
		"zstd":        zstandard(t, data),
		"zstd stream": zstdStream(t, data),
	} {
		held := newBudget(1<<30, 0).reserve()
		got, err := unpack(t.Context(), body, len(data), held)
		require.NoError(t, err, name)
		assert.Equal(t, data, got, name)
		_, err = unpack(t.Context(), body, len(data)-1, held)
		assert.Equal(t, http.StatusRequestEntityTooLarge, refusalOf(err).status, name)
	}
}
