// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
)

// TestADirectoryIsSentOrCompacted: whoever comes second is refused, as long as the first one runs.
func TestADirectoryIsSentOrCompacted(t *testing.T) {
	d := newDirectory(t)
	for first, second := range map[store.Use]store.Use{store.Sent: store.Compacted, store.Compacted: store.Sent} {
		claim, err := store.Claim(d.dir, first)
		require.NoError(t, err)
		again, err := store.Claim(d.dir, first)
		require.NoError(t, err, "two may do the same")
		require.NoError(t, claim.Close())
		_, err = store.Claim(d.dir, second)
		require.ErrorIs(t, err, store.ErrClaimed)
		require.ErrorContains(t, err, d.dir)
		_, err = store.Claim(t.TempDir(), second)
		require.NoError(t, err, "another directory")
		require.NoError(t, again.Close())
		other, err := store.Claim(d.dir, second)
		require.NoError(t, err, "a restart may change the use")
		require.NoError(t, other.Close())
	}
	d.write(1)
	require.Equal(t, once(1), d.counts())
	require.Len(t, paths(t, d.dir), 1)
}
