// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// ReadPlain returns the content of a file, decompressed by its suffix.
func ReadPlain(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	require.NoError(tb, err)
	var from io.Reader = bytes.NewReader(data)
	switch filepath.Ext(path) {
	case ".gz":
		from, err = gzip.NewReader(from)
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(from); err == nil {
			defer z.Close()
		}
		from = z
	}
	require.NoError(tb, err, path)
	plain, err := io.ReadAll(from)
	require.NoError(tb, err, path)
	return plain
}

// ReadRecords reads a closed file as the documentation of the format has it, with no code of ours: messages that are
// preceded by their length in 4 big-endian bytes, or lines.
func ReadRecords(tb testing.TB, path string) (records [][]byte) {
	tb.Helper()
	plain := ReadPlain(tb, path)
	if strings.Contains(filepath.Base(path), ".jsonl") {
		lines := bytes.Split(plain, []byte("\n"))
		require.Empty(tb, lines[len(lines)-1], "the last line of %s does not end", path)
		return lines[:len(lines)-1]
	}
	for len(plain) > 0 {
		require.GreaterOrEqual(tb, len(plain), 4, "no length in %s", path)
		end := 4 + int(binary.BigEndian.Uint32(plain))
		require.GreaterOrEqual(tb, len(plain), end, "a record of %s goes beyond the end", path)
		records, plain = append(records, plain[4:end]), plain[end:]
	}
	return records
}

// WriteAt writes a file with this time of modification, and its directories.
func WriteAt(tb testing.TB, path string, content []byte, modified time.Time) {
	tb.Helper()
	require.NoError(tb, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(tb, os.WriteFile(path, content, 0o600))
	require.NoError(tb, os.Chtimes(path, modified, modified))
}

// WriteFile writes a file of this name into a directory of its own, and returns its path.
func WriteFile(tb testing.TB, name string, content []byte) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), name)
	require.NoError(tb, os.WriteFile(path, content, 0o600))
	return path
}
