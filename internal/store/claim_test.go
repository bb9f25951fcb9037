// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
)

func TestADirectoryIsCompactedOrSent(t *testing.T) {
	for _, uses := range [][2]store.Use{{store.Compacts, store.Sends}, {store.Sends, store.Compacts}} {
		dir := t.TempDir()
		first, err := store.ClaimDirectory(dir, uses[0])
		require.NoError(t, err)
		second, err := store.ClaimDirectory(dir, uses[0])
		require.NoError(t, err, "several processes may have the same use")
		_, err = store.ClaimDirectory(dir, uses[1])
		var inUse *store.InUseError
		require.ErrorAs(t, err, &inUse)
		require.Equal(t, store.InUseError{Directory: dir, Wanted: uses[1], Other: uses[0]}, *inUse)
		require.NoError(t, first.Close())
		_, err = store.ClaimDirectory(dir, uses[1])
		require.ErrorAs(t, err, &inUse)
		require.NoError(t, second.Close())
		third, err := store.ClaimDirectory(dir, uses[1])
		require.NoError(t, err, "those of ended processes do not count")
		require.NoError(t, third.Close())
	}
	_, err := store.ClaimDirectory(filepath.Join(t.TempDir(), "missing"), store.Sends)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestClaimsAtOnce: of different uses that start at once, none or one succeeds; of equal ones, all.
func TestClaimsAtOnce(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		var claims [8]*store.Claim
		var all sync.WaitGroup
		for i := range claims {
			all.Go(func() { claims[i], _ = store.ClaimDirectory(dir, [2]store.Use{store.Compacts, store.Sends}[i%2]) })
		}
		all.Wait()
		var succeeded [2]int
		for i, claim := range claims {
			if claim != nil {
				succeeded[i%2]++
				require.NoError(t, claim.Close())
			}
		}
		require.Zero(t, min(succeeded[0], succeeded[1]), succeeded)
	}
	var claims [8]*store.Claim
	var all sync.WaitGroup
	for i := range claims {
		all.Go(func() { claims[i], _ = store.ClaimDirectory(dir, store.Sends) })
	}
	all.Wait()
	for _, claim := range claims {
		require.NotNil(t, claim)
		require.NoError(t, claim.Close())
	}
}

func TestAFileThatIsSentStaysUntilThen(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	reading, err := os.Open(filepath.Join(d.dir, paths(t, d.dir)[0]))
	require.NoError(t, err)
	d.write(2) // its name may be before the other one
	locked, err := regularfile.TryLockShared(reading)
	require.NoError(t, err)
	require.True(t, locked)
	d.process = &process{}
	w := d.open(func(o *store.Options) {
		o.OpenDir, o.Retention = nil, store.Retention{MaxAge: time.Minute}
	})
	d.now = begin.Add(2 * time.Hour)
	w.Maintain()
	require.Equal(t, once(1), d.counts())
	require.NoError(t, reading.Close())
	w.Maintain()
	require.Empty(t, d.counts())
	require.NoError(t, w.Close())
}

func TestEmptyDirectoriesAreRemoved(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	f, ok := layout.ParsePath(paths(t, d.dir)[0])
	require.True(t, ok)
	require.NoError(t, store.Remove(d.dir, &f))
	hour := filepath.Join(d.dir, f.Dir())
	require.DirExists(t, hour)
	require.NoError(t, store.RemoveEmpty(d.dir, begin.Add(59*time.Minute)))
	require.DirExists(t, hour, "a Writer may need it soon")

	lock, err := os.Open(hour)
	require.NoError(t, err)
	_, err = regularfile.TryLockShared(lock)
	require.NoError(t, err)
	later := begin.Add(2 * time.Hour)
	require.NoError(t, store.RemoveEmpty(d.dir, later))
	require.DirExists(t, hour, "a Writer has its lock")
	require.NoError(t, lock.Close())
	require.NoError(t, store.RemoveEmpty(d.dir, later))
	require.NoDirExists(t, hour)
	require.DirExists(t, filepath.Dir(hour), "of today")
	require.NoError(t, store.RemoveEmpty(d.dir, begin.AddDate(1, 0, 0)))
	require.NoDirExists(t, filepath.Join(d.dir, "service.name=checkout"))
	d.write(2)
	require.Equal(t, once(2), d.counts())
	require.NoError(t, store.RemoveEmpty(d.dir, begin.AddDate(1, 0, 0)))
	require.Equal(t, once(2), d.counts())
}

// TestMovedFileTakesItsInputsAway: otherwise they would count again.
func TestMovedFileTakesItsInputsAway(t *testing.T) {
	d := newDirectory(t)
	d.write(1)
	d.write(2)
	input := paths(t, d.dir)[0]
	content, err := os.ReadFile(filepath.Join(d.dir, input))
	require.NoError(t, err)
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	require.NoError(t, os.MkdirAll(filepath.Join(d.dir, filepath.Dir(input)), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, input), content, 0o600)) // as if it could not be removed
	files, all, err := openStore(t, d.dir).Files(t.Context())
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Len(t, all, 2)
	to := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, store.Move(d.dir, &files[0], to))
	require.FileExists(t, to)
	require.Empty(t, d.counts())
}
