// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package segment

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestE11Umask: not parallel, the umask is the process's.
func TestE11Umask(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	old := unix.Umask(0)
	defer unix.Umask(old)
	w := openTestWriter(t, dir, Options{Format: allFormats[0]})
	require.NoError(t, w.Append(testRecord(OTLPProto, 1, 10), Count{}))
	for path, want := range map[string]fs.FileMode{
		dir: 0o700, filepath.Dir(dir): 0o700, filepath.Join(dir, list(t, dir)[0]): 0o600,
	} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, info.Mode().Perm(), path)
	}
	require.NoError(t, w.Close())
}
