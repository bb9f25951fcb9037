// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// pendingWatcher is a Watcher whose Handler only lists the files, which are complete at once. poll
// returns their names.
func pendingWatcher(t *testing.T, dir string) (w *Watcher, handled map[string]*File, poll func() []string) {
	t.Helper()
	handled = map[string]*File{}
	var names []string
	w, err := New(Config{Include: []string{filepath.Join(dir, "*")}, PollInterval: time.Hour}, func(_ context.Context, f *File) error {
		names = append(names, f.Relative())
		handled[f.Relative()] = f
		return ErrPending
	}, zap.NewNop())
	require.NoError(t, err)
	w.QuietTime = func(*File) time.Duration { return 0 }
	return w, handled, func() []string {
		names = nil
		w.Poll(t.Context())
		return names
	}
}

func TestPendingFileIsHandledOnce(t *testing.T) {
	dir := t.TempDir()
	w, handled, poll := pendingWatcher(t, dir)
	var unhandled int
	var gone []string
	w.Polled = func(n int, files []string) { unhandled, gone = n, files }
	for _, name := range []string{"a", "b", "c", "d"} {
		write(t, filepath.Join(dir, name), name)
	}
	assert.Equal(t, []string{"a", "b", "c", "d"}, poll())
	assert.Empty(t, poll())
	assert.Zero(t, unhandled)

	w.Done(t.Context(), handled["a"], nil)
	w.Done(t.Context(), handled["b"], ErrRemoved) // a poll may have found it before
	w.Done(t.Context(), handled["c"], ErrChanged)
	assert.Equal(t, []string{"c"}, poll())
	w.MaxRetryDelay = 0
	w.Done(t.Context(), handled["c"], &RetryError{Err: os.ErrPermission})
	require.NoError(t, os.Remove(filepath.Join(dir, "b")))
	require.NoError(t, os.Remove(filepath.Join(dir, "d")))
	assert.Equal(t, []string{"c"}, poll())
	assert.Equal(t, []string{filepath.Join(dir, "d")}, gone)

	write(t, filepath.Join(dir, "b"), "another file of the same name")
	assert.Equal(t, []string{"b"}, poll())
}

// A file that takes the name of one that is gone before a poll misses it is handled as well.
func TestNameOfARemovedFileIsUsedAgain(t *testing.T) {
	dir := t.TempDir()
	w, handled, poll := pendingWatcher(t, dir)
	unhandled := 0
	w.Polled = func(n int, _ []string) { unhandled = n }
	path := filepath.Join(dir, "a")
	write(t, path, "first")
	assert.Equal(t, []string{"a"}, poll())
	require.NoError(t, os.Remove(path))
	w.Done(t.Context(), handled["a"], ErrRemoved)
	write(t, path, "the second")
	assert.Equal(t, []string{"a"}, poll())
	assert.Zero(t, unhandled)
}

// The progress of a version is stored until the version is handled.
func TestProgressOfAFile(t *testing.T) {
	dir, kept := t.TempDir(), &profiletest.Storage{}
	w, handled, poll := pendingWatcher(t, dir)
	w.states = newStates(kept)
	path := filepath.Join(dir, "a")
	write(t, path, "a")
	poll()
	assert.Nil(t, w.Progress(handled["a"]))
	w.SaveProgress(t.Context(), handled["a"], []byte("half"))

	w, handled, poll = pendingWatcher(t, dir) // a restart
	w.states = newStates(kept)
	require.NoError(t, w.states.load(t.Context(), time.Now()))
	poll()
	assert.Equal(t, "half", string(w.Progress(handled["a"])))
	w.Done(t.Context(), handled["a"], nil)
	assert.Nil(t, w.Progress(handled["a"]))

	write(t, path, "another version")
	poll()
	assert.Nil(t, w.Progress(handled["a"]))
	w.SaveProgress(t.Context(), handled["a"], []byte("half"))
	w.Done(t.Context(), handled["a"], ErrRemoved)
	require.NoError(t, os.Remove(path))
	poll()
	require.NoError(t, w.states.load(t.Context(), time.Now()))
	assert.Empty(t, w.states.parts[partOf(path)].files, "nothing is stored of a removed file")
}

// StartAtEnd skips the files of the first poll, and no others, also after a restart.
func TestStartAtEnd(t *testing.T) {
	dir, kept := t.TempDir(), &profiletest.Storage{}
	write(t, filepath.Join(dir, "old"), "old")
	for _, name := range []string{"", "first", "second"} {
		w, handled, poll := pendingWatcher(t, dir)
		w.StartAtEnd, w.states = true, newStates(kept)
		require.NoError(t, w.states.load(t.Context(), time.Now()))
		if name == "" {
			assert.Empty(t, poll())
			continue
		}
		write(t, filepath.Join(dir, name), name)
		assert.Equal(t, []string{name}, poll())
		w.Done(t.Context(), handled[name], nil)
	}
}

// TestIndexesAreSkipped: the profiles_file exporter leaves an index beside each file.
func TestIndexesAreSkipped(t *testing.T) {
	dir := t.TempDir()
	_, _, poll := pendingWatcher(t, dir)
	write(t, filepath.Join(dir, "a.otlp.pb"), "a")
	write(t, filepath.Join(dir, "a.otlp.pb.index"), "{}")
	assert.Equal(t, []string{"a.otlp.pb"}, poll())
}
