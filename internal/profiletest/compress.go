// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

// Gzip compresses data to one gzip member.
func Gzip(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	return written(tb, &buf, gzip.NewWriter(&buf), data)
}

// LZ4 compresses data to one lz4 frame.
func LZ4(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	return written(tb, &buf, lz4.NewWriter(&buf), data)
}

// Zstd compresses data to one zstd frame, with its size in the header.
func Zstd(tb testing.TB, data []byte) []byte {
	tb.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(tb, err)
	encoded := w.EncodeAll(data, nil)
	require.NoError(tb, w.Close())
	return encoded
}

// ZstdStream compresses data to one zstd frame without its size in the header.
func ZstdStream(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w, err := zstd.NewWriter(&buf, zstd.WithEncoderConcurrency(1))
	require.NoError(tb, err)
	return written(tb, &buf, w, data)
}

// written writes data to w and returns the content of buf then.
func written(tb testing.TB, buf *bytes.Buffer, w io.WriteCloser, data []byte) []byte {
	tb.Helper()
	_, err := w.Write(data)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return buf.Bytes()
}
