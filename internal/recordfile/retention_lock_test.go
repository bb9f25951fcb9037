// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package recordfile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// A file that readers have locked is not removed before they close it.
func TestRetentionSkipsLockedFiles(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	var removed []string
	s := openTestWriter(t, dir, Options{Format: allFormats[2], Now: clock.Now, Rotation: Rotation{MaxRecords: 1}, MaxOpen: 1,
		Retention: Retention{MaxFiles: 1}, FileRemoved: func(path string, _ int64) { removed = append(removed, path) }})
	for id := range 4 {
		clock.step(time.Second)
		require.NoError(t, s.Append(plainRecord(OTLPProto, id, 100)))
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.zst"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	var readers []*os.File
	for range 2 {
		f, err := os.Open(files[0])
		require.NoError(t, err)
		locked, err := regularfile.TryLockShared(f)
		require.NoError(t, err)
		require.True(t, locked, "readers share the lock")
		readers = append(readers, f)
	}
	s.Maintain()
	assert.Equal(t, files[1:3], removed)
	require.NoError(t, readers[0].Close())
	s.Maintain()
	assert.FileExists(t, files[0])
	require.NoError(t, readers[1].Close())
	s.Maintain()
	assert.Equal(t, append(files[1:3:3], files[0]), removed)
	require.NoError(t, s.Close())
}
