// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNamesGrowThoughTheClockGoesBack(t *testing.T) {
	n := names{format: allFormats[0]}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	last := ""
	for _, step := range []time.Duration{0, 0, time.Millisecond, -time.Hour, time.Minute, 2 * time.Hour} {
		now = now.Add(step)
		name := n.next(now).String()
		assert.Greater(t, name, last)
		last = name
	}
	assert.Equal(t, "profiles-20261121T110100.001Z-000006.otlp.pb", last)
}

// TestTypesOfPprofFilesNeverShareAName: whatever a client sends as the profile type, the file is
// in the directory, and recovery and retention recognize it.
func TestTypesOfPprofFilesNeverShareAName_E10(t *testing.T) {
	long := strings.Repeat("x", 5000)
	types := []string{
		"cpu", "CPU", "mutex", "block", "", "profiles", "%70rofiles", "_empty", ".", "..", "../../etc/passwd", "/abs", `..\a`, "nul", "a\x00b",
		"a b", "a-20261121T102330.123Z-000001", "-rf", "~", "\xff", "\n", "*", long, long + "y", "cpu-", "cpu.",
	}
	dir := filepath.Join(t.TempDir(), "profiles")
	w := openTestWriter(t, dir, Options{Format: Format{Content: Pprof, Compression: Gzip}})
	for range 2 {
		for _, profileType := range types {
			require.NoError(t, w.Append(Record{Data: []byte("\x08\x01"), Type: profileType}))
		}
	}
	require.NoError(t, w.Close())
	files := map[string]int{}
	for _, name := range list(t, dir) {
		parsed, ok := ParseName(name)
		require.True(t, ok, name)
		files[parsed.Prefix]++
	}
	assert.Len(t, files, len(types), "a name for each type")
	for prefix, n := range files {
		assert.Equal(t, 2, n, prefix)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is outside the directory")
}
