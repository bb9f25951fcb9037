// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestDirReachesNothingOutside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir")
	dir, err := OpenDir(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, dir.Close()) }()
	outside := filepath.Join(filepath.Dir(path), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("outside"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(path, "link")))
	require.NoError(t, os.Symlink("../new", filepath.Join(path, "dangling")))
	for _, name := range []string{"link", "../outside", outside} {
		_, err = dir.Open(name)
		require.Error(t, err, name)
	}
	for _, name := range []string{"link", "dangling", "../new"} {
		_, err = dir.Create(name)
		require.Error(t, err, name)
	}
	assert.NoFileExists(t, filepath.Join(filepath.Dir(path), "new"))
}

// TestDirectoryIsMadeAgainUntilItIsSynced_E4: one that exists is entered and not synced.
func TestDirectoryIsMadeAgainUntilItIsSynced_E4(t *testing.T) {
	path := t.TempDir()
	opened, err := OpenDir(path)
	require.NoError(t, err)
	dir := opened.(*osDir)
	require.NoError(t, dir.self.Close()) // it cannot be synced any more
	require.ErrorIs(t, dir.create("group"), os.ErrClosed)
	assert.NoDirExists(t, filepath.Join(path, "group"))
	require.NoError(t, os.Mkdir(filepath.Join(path, "others"), 0o700))
	require.ErrorIs(t, dir.create("others"), os.ErrClosed)
	assert.DirExists(t, filepath.Join(path, "others"), "it was there before")
	require.NoError(t, dir.root.Close())

	opened, err = OpenDir(path, "group")
	require.NoError(t, err)
	require.NoError(t, opened.Close())
	assert.DirExists(t, filepath.Join(path, "group"))
	profiletest.Injected(t, "2 failing syncs of a directory")
}
