// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
)

// A file that became a named pipe after it was found is an error: opening it does not wait for a writer.
func TestRecordsDoesNotWaitForANamedPipe_V7(t *testing.T) {
	others := func(string) bool { return false }
	path := filepath.Join(t.TempDir(), "a.pb")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	files, failed := Find([]string{path}, others)
	require.Empty(t, failed)
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	found, failed := Find([]string{filepath.Dir(path)}, others)
	require.Empty(t, failed)
	require.Empty(t, found)
	var o Options
	for record, err := range o.Records(files[0]) {
		assert.Nil(t, record)
		assert.ErrorIs(t, err, regularfile.ErrNotRegular)
	}
}
