// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment/segmenttest"
)

// TestToolsGivePlainStream: zstd -dc and gzip -dc of a compressed file is the plain file.
func TestToolsGivePlainStream(t *testing.T) {
	for _, format := range segmenttest.Formats {
		tool := map[segment.Compression]string{segment.Gzip: "gzip", segment.Zstd: "zstd"}[format.Compression]
		if tool == "" {
			continue
		}
		t.Run(segmenttest.TestName(format), func(t *testing.T) {
			path, err := exec.LookPath(tool)
			if err != nil {
				t.Skipf("%s is not installed", tool)
			}
			n := 20
			if format.Bare {
				n = 1
			}
			file := filepath.Join(t.TempDir(), "file"+filepath.Ext(segment.Name{Format: format}.String()))
			require.NoError(t, os.WriteFile(file, segmenttest.File(t, format, n, 5000), 0o600))
			got, err := exec.CommandContext(t.Context(), path, "-dc", file).Output()
			require.NoError(t, err)
			format.Compression = segment.None
			assert.Equal(t, segmenttest.File(t, format, n, 5000), got)
		})
	}
}

// TestLengthPrefix reads a plain file without any of our code: 4 bytes of length,
// big-endian, and so many bytes, as the file exporter of collector-contrib writes.
func TestLengthPrefix(t *testing.T) {
	for _, size := range []int{10, 128 << 10} {
		data := segmenttest.File(t, segmenttest.Formats[0], 3, size)
		for id := 1; id <= 3; id++ {
			n := binary.BigEndian.Uint32(data)
			assert.Equal(t, segmenttest.Record(segment.OTLPProto, id, size), data[4:4+n])
			data = data[4+n:]
		}
		assert.Empty(t, data)
		lines := strings.SplitAfter(string(segmenttest.File(t, segmenttest.Formats[3], 3, size)), "\n")
		assert.Equal(t, string(segmenttest.Record(segment.OTLPJSON, 2, size))+"\n", lines[1])
	}
}
