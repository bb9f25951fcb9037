// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os"
	"os/exec"
	"path/filepath"
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
			const n = 20
			file := filepath.Join(t.TempDir(), "file"+filepath.Ext(Name{Format: format}.String()))
			require.NoError(t, os.WriteFile(file, fileOf(t, format, n, 5000), 0o600))
			got, err := exec.CommandContext(t.Context(), path, "-dc", file).Output()
			require.NoError(t, err)
			format.Compression = None
			assert.Equal(t, fileOf(t, format, n, 5000), got)
		})
	}
}
