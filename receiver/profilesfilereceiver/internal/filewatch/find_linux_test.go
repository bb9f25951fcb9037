// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// A file below several directories takes more descriptors than to list them. A queued file that a complete
// poll misses is taken for removed, and is not handled again.
func TestFilesThatTooManyOpenFilesHideAreNotGone_R17(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a", "b", "c", "file"), "a")
	for name, target := range map[string]string{"circle": "circle", "out": "/etc", "nowhere": "nothing", "below": "a/b/c/file/x"} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	f := newFinder(Config{Include: []string{filepath.Join(dir, "**")}}, zap.NewNop())

	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	low := limit
	low.Cur = 64
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) }()
	var opened []*os.File
	for {
		file, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		opened = append(opened, file)
	}
	for _, file := range opened {
		if files, complete := f.find(); complete {
			assert.Len(t, files, 1)
		}
		require.NoError(t, file.Close())
	}
	files, complete := f.find()
	assert.Len(t, files, 1)
	assert.True(t, complete)
}
