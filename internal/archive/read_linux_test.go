// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// A file that became a named pipe after it was found is an error, and so is its index: opening it does not wait for a writer.
func TestRecordsDoesNotWaitForANamedPipe_V7(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.pb")
	for _, name := range []string{path, path + recordfile.IndexSuffix} {
		require.NoError(t, os.WriteFile(name, []byte("x"), 0o600))
	}
	files, failed := Find([]string{path})
	require.Empty(t, failed)
	require.True(t, files[0].Index)
	for _, name := range []string{path, path + recordfile.IndexSuffix} {
		require.NoError(t, os.Remove(name))
		require.NoError(t, syscall.Mkfifo(name, 0o600))
	}
	replacing := recordfile.Name{Format: recordfile.Format{Content: recordfile.OTLPProto}, Span: time.Hour}.String()
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), replacing), []byte("x"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(filepath.Dir(path), recordfile.ManifestName(replacing)), 0o600))
	found, failed := Find([]string{filepath.Dir(path)})
	require.Empty(t, failed)
	require.Len(t, found, 1, "a manifest that is a pipe replaces nothing")
	var o Options
	assert.Nil(t, o.StoredIndex(t.Context(), files[0]))
	for record, err := range o.Records(t.Context(), files[0], Part{}) {
		assert.Nil(t, record)
		assert.ErrorIs(t, err, regularfile.ErrNotRegular)
	}
}
