// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package recordfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestUmask_E11: not parallel, the umask is the process's.
func TestUmask_E11(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	old := unix.Umask(0)
	defer unix.Umask(old)
	s := openTestWriter(t, dir, Options{Format: allFormats[0], Rotation: Rotation{MaxRecords: 2}, Levels: 2, MaxOpen: 4})
	for id := range 3 { // a finished file, and one being written
		require.NoError(t, s.Append(plainRecord(OTLPProto, id, 10, "a", "b")))
	}
	files, directories := 0, 0
	require.NoError(t, filepath.WalkDir(filepath.Dir(dir), func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		if entry.IsDir() {
			directories++
			assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), path)
		} else {
			files++
			assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), path)
		}
		return nil
	}))
	require.NoError(t, s.Close())
	assert.Equal(t, 2, files)
	assert.Equal(t, 4, directories)
	profiletest.Injected(t, fmt.Sprintf("umask 0 for %d files and %d directories", files, directories))
}
