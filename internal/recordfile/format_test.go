// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestToolsGivePlainStream: zstd -dc and gzip -dc of a compressed file is the plain file.
func TestToolsGivePlainStream(t *testing.T) {
	for _, format := range allFormats {
		tool := map[Compression]string{Gzip: "gzip", Zstd: "zstd"}[format.Compression]
		if tool == "" {
			continue
		}
		t.Run(formatName(format), func(t *testing.T) {
			path, err := exec.LookPath(tool)
			if err != nil {
				t.Skipf("%s is not installed", tool)
			}
			n := 20
			if format.Bare {
				n = 1
			}
			file := filepath.Join(t.TempDir(), "file"+filepath.Ext(Name{Format: format}.String()))
			require.NoError(t, os.WriteFile(file, fileOf(t, format, n, 5000), 0o600))
			got, err := exec.CommandContext(t.Context(), path, "-dc", file).Output()
			require.NoError(t, err)
			format.Compression = None
			assert.Equal(t, fileOf(t, format, n, 5000), got)
		})
	}
}

// TestLengthPrefix reads a plain file without any of our code: 4 bytes of length,
// big-endian, and so many bytes, as the file exporter of collector-contrib writes.
func TestLengthPrefix(t *testing.T) {
	for _, size := range []int{10, 128 << 10} {
		data := fileOf(t, allFormats[0], 3, size)
		for id := 1; id <= 3; id++ {
			n := binary.BigEndian.Uint32(data)
			assert.Equal(t, newRecord(OTLPProto, id, size), data[4:4+n])
			data = data[4+n:]
		}
		assert.Empty(t, data)
		lines := strings.SplitAfter(string(fileOf(t, allFormats[3], 3, size)), "\n")
		assert.Equal(t, string(newRecord(OTLPJSON, 2, size))+"\n", lines[1])
	}
}
