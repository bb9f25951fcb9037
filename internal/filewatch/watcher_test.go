// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
}

func content(f *File) (string, error) {
	opened, err := f.Open()
	if err != nil {
		return "", err
	}
	defer func() { _ = opened.Close() }()
	data, err := io.ReadAll(opened)
	return string(data), errors.Join(err, f.Unchanged(opened))
}

func TestSameContent(t *testing.T) {
	now := version{Size: 1, ModTime: 2, Inode: 3, ChangeTime: 4}
	assert.True(t, now.sameContent(version{Size: 1, ModTime: 2, Inode: 9, ChangeTime: 4}), "after a mount")
	assert.True(t, now.sameContent(version{Size: 1, ModTime: 2}), "stored before inodes were")
	assert.False(t, now.sameContent(version{Size: 1, ModTime: 3, Inode: 3, ChangeTime: 4}))
	assert.False(t, now.sameContent(version{Size: 2, ModTime: 2, Inode: 3, ChangeTime: 4}))
}

// A file is handled again after a RetryError, which is logged once, and not after
// others until it changes.
func TestPollRetries(t *testing.T) {
	dir := t.TempDir()
	core, logs := observer.New(zap.DebugLevel)
	var handled []string
	answers := map[string]error{}
	w, err := New(Config{Include: []string{filepath.Join(dir, "*.pb")}, PollInterval: time.Minute}, func(_ context.Context, f *File) error {
		text, err := content(f)
		require.NoError(t, err)
		handled = append(handled, text)
		return answers[text]
	}, zap.New(core))
	require.NoError(t, err)
	w.MaxRetryDelay = 0
	poll := func() []string {
		handled = nil
		w.Poll(t.Context())
		return handled
	}
	answers["a"], answers["b"], answers["c"] = &RetryError{Err: errors.New("later")}, errors.New("never"), ErrChanged
	for _, name := range []string{"a", "b", "c", "d"} {
		write(t, filepath.Join(dir, name+".pb"), name)
	}
	assert.Equal(t, []string{"a", "b", "c", "d"}, poll())
	assert.Equal(t, []string{"c", "a"}, poll(), "retries come last")
	assert.Equal(t, 1, logs.FilterMessage("Cannot process file; will retry").Len())
	assert.Equal(t, 1, logs.FilterMessage("Skipping file until it changes").Len())
	clear(answers)
	assert.Equal(t, []string{"c", "a"}, poll())
	write(t, filepath.Join(dir, "b.pb"), "bb")
	assert.Equal(t, []string{"bb"}, poll())
	assert.Empty(t, poll())
}

// A poll that comes early for a retry does not make a file complete that is still written.
func TestEarlyPollOfAGrowingFile_R17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		growing := filepath.Join(dir, "growing")
		var handled []string
		w, err := New(Config{Include: []string{filepath.Join(dir, "*")}, PollInterval: 10 * time.Second}, func(_ context.Context, f *File) error {
			if f.Path != growing {
				return &RetryError{Err: errors.New("later")}
			}
			text, err := content(f)
			handled = append(handled, text)
			return err
		}, zap.NewNop())
		require.NoError(t, err)
		w.MaxRetryDelay = 2 * time.Second
		write(t, filepath.Join(dir, "poison"), "x")
		for _, text := range []string{"half", "whole"} {
			write(t, growing, text)
			require.NoError(t, os.Chtimes(growing, time.Now(), time.Now()))
			for written := time.Now(); time.Since(written) < 9*time.Second; {
				w.Poll(t.Context())
				time.Sleep(min(w.untilNextPoll(time.Now()), time.Until(written.Add(9*time.Second))))
			}
		}
		assert.Empty(t, handled)
		time.Sleep(time.Second)
		w.Poll(t.Context())
		assert.Equal(t, []string{"whole"}, handled)
		profiletest.Injected(t, "1 file that grows while another is retried")
	})
}

// A file that goes away, or becomes another, after it was found is not what was found.
func TestReadOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	f, err := newFinder(Config{Include: []string{filepath.Join(dir, "**")}}, zap.NewNop())
	require.NoError(t, err)
	path := filepath.Join(dir, "a")
	write(t, path, "one")
	files, complete := f.find()
	require.True(t, complete)
	require.Len(t, files, 1)
	got, err := content(files[0])
	require.NoError(t, err)
	assert.Equal(t, "one", got)
	opened, err := files[0].Open()
	require.NoError(t, err)
	write(t, path, "longer")
	require.ErrorIs(t, files[0].Unchanged(opened), ErrChanged)
	require.NoError(t, opened.Close())
	_, err = content(files[0])
	require.ErrorIs(t, err, ErrChanged)
	require.NoError(t, os.Remove(path))
	_, err = content(files[0])
	var retry *RetryError
	require.ErrorAs(t, err, &retry)
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = content(files[0])
	require.ErrorIs(t, err, ErrChanged)
}

// The checkpoint of a file that is gone for long is dropped, so that they do not grow.
func TestCheckpointsAreForgotten(t *testing.T) {
	kept := &profiletest.Storage{}
	c := newStates(kept)
	now := time.Now()
	const odd = "odd \xff\"" // not UTF-8
	find := func(at time.Time, paths ...string) {
		for _, path := range paths {
			c.lookup(path).foundAt = at
		}
		require.NoError(t, c.forget(t.Context(), at))
	}
	for _, path := range []string{odd, "a", "b"} {
		c.lookup(path).foundAt = now
		require.NoError(t, c.setCheckpoint(t.Context(), path, version{Size: 1}))
	}
	known := func() (paths []string) {
		stored := newStates(kept)
		require.NoError(t, stored.load(t.Context(), now))
		for _, path := range []string{odd, "a", "b"} {
			if stored.lookup(path).checkpoint.sameContent(version{Size: 1}) {
				paths = append(paths, path)
			}
		}
		return paths
	}
	find(now.Add(forgetAfter/2), "a", "unread")
	assert.Equal(t, []string{odd, "a", "b"}, known(), "they may come back")
	assert.Contains(t, c.parts[partOf("unread")].files, "unread")
	find(now.Add(forgetAfter-1), "a", "b")
	assert.NotContains(t, c.parts[partOf("unread")].files, "unread", "it has no checkpoint")
	assert.Equal(t, []string{odd, "a", "b"}, known())
	find(now.Add(forgetAfter), "a")
	assert.Equal(t, []string{"a", "b"}, known())
	find(now.Add(2*forgetAfter), "a")
	assert.Equal(t, []string{"a"}, known())

	require.NoError(t, kept.Set(t.Context(), partKey(0), []byte("damaged")))
	require.ErrorContains(t, newStates(kept).load(t.Context(), now), "files.0: ")
}

// A listing may miss the new name of a file whose old name another file already has.
func TestRenamedFileThatAListingMisses(t *testing.T) {
	kept := &profiletest.Storage{}
	s := newStates(kept)
	first, second := version{Size: 1, ModTime: 1, Inode: 1, ChangeTime: 1}, version{Size: 1, ModTime: 2, Inode: 2, ChangeTime: 2}
	start := time.Now()
	polls := 0
	poll := func(found ...*File) {
		t.Helper()
		polls++
		at := start.Add(time.Duration(polls) * time.Second)
		s.adoptRenamed(found, at)
		for _, file := range found {
			s.lookup(file.Path).foundAt = at
		}
		require.NoError(t, s.forget(t.Context(), at))
		s = newStates(kept) // a restart
		require.NoError(t, s.load(t.Context(), at))
	}
	require.NoError(t, s.setCheckpoint(t.Context(), "a.1", first))
	require.NoError(t, s.setCheckpoint(t.Context(), "a", second))
	second.ChangeTime++
	first.ChangeTime++
	poll(&File{Path: "a.1", version: second})
	poll(&File{Path: "a.1", version: second}, &File{Path: "a.2", version: first})
	assert.Equal(t, second, s.lookup("a.1").checkpoint)
	assert.Equal(t, first, s.lookup("a.2").checkpoint)
	require.NoError(t, s.forget(t.Context(), start.Add(time.Minute)))
	for i := range s.parts {
		for path := range s.parts[i].files {
			assert.NotContains(t, path, replacedMark)
		}
	}
}

// Of two globs below one directory, one may reach a directory that the other does not.
func TestGlobThatFailsIsReportedOnce(t *testing.T) {
	dir := t.TempDir()
	core, logs := observer.New(zap.WarnLevel)
	f, err := newFinder(Config{Include: []string{filepath.Join(dir, "**", "*.pb"), filepath.Join(dir, "*.jfr")}}, zap.New(core))
	require.NoError(t, err)
	for range 3 {
		f.report(f.include[0], os.ErrPermission)
		f.report(f.include[1], nil)
	}
	assert.Equal(t, 1, logs.Len())
}

func TestDirectoryThatCannotBeSearchedIsReported(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may search every directory")
	}
	dir := filepath.Join(t.TempDir(), "listed")
	write(t, filepath.Join(dir, "a"), "a")
	require.NoError(t, os.Chmod(dir, 0o600))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	core, logs := observer.New(zap.WarnLevel)
	f, err := newFinder(Config{Include: []string{filepath.Join(filepath.Dir(dir), "*", "*")}}, zap.New(core))
	require.NoError(t, err)
	files, complete := f.find()
	assert.Empty(t, files)
	assert.False(t, complete)
	assert.Equal(t, 1, logs.FilterMessage("Cannot list directory; will retry").Len())
}

func TestLinksToOneFileAreHandledOnce_R17(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "first"), "a")
	require.NoError(t, os.Link(filepath.Join(dir, "first"), filepath.Join(dir, "hard")))
	require.NoError(t, os.Symlink("first", filepath.Join(dir, "symbolic")))
	handled, unhandled := 0, 0
	answer := error(&RetryError{Err: errors.New("later")})
	w, err := New(Config{Include: []string{filepath.Join(dir, "*")}, PollInterval: time.Minute}, func(context.Context, *File) error {
		handled++
		return answer
	}, zap.NewNop())
	require.NoError(t, err)
	w.MaxRetryDelay = 0
	w.Polled = func(n int, _ []string) { unhandled = n }
	w.Poll(t.Context())
	answer = nil
	for range 3 {
		w.Poll(t.Context())
	}
	assert.Equal(t, 2, handled, "once with an error")
	assert.Zero(t, unhandled)
}

func TestWatcherStopsAtOnce(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "a")
	entered := make(chan struct{})
	w, err := New(Config{Include: []string{filepath.Join(dir, "*")}, PollInterval: time.Millisecond}, func(ctx context.Context, _ *File) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}, zap.NewNop())
	require.NoError(t, err)
	require.NoError(t, w.Shutdown(t.Context()), "before the start")
	require.NoError(t, w.Start(t.Context(), componenttest.NewNopHost(), component.MustNewID("test")))
	<-entered
	require.NoError(t, w.Shutdown(t.Context()))
	assert.Zero(t, w.states.lookup(filepath.Join(dir, "a")).checkpoint)
}

// Otherwise a receiver of many files would rest for most of the time.
func TestSlowHandlerDoesNotDelayTheNextPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		handled := make(chan string, 10)
		w, err := New(Config{Include: []string{filepath.Join(dir, "*")}, PollInterval: 10 * time.Second}, func(_ context.Context, f *File) error {
			time.Sleep(time.Minute)
			handled <- filepath.Base(f.Path)
			return nil
		}, zap.NewNop())
		require.NoError(t, err)
		write(t, filepath.Join(dir, "a"), "a")
		require.NoError(t, w.Start(t.Context(), componenttest.NewNopHost(), component.MustNewID("test")))
		assert.Equal(t, "a", <-handled)
		start := time.Now()
		write(t, filepath.Join(dir, "b"), "b")
		assert.Equal(t, "b", <-handled)
		assert.Equal(t, 70*time.Second, time.Since(start))
		require.NoError(t, w.Shutdown(t.Context()))
	})
}

// The next poll comes after the poll interval, or when a retry is due. If the pipeline
// rejects everything, polls have a backoff.
func TestTimeOfTheNextPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		answer := error(nil)
		w, err := New(Config{Include: []string{filepath.Join(dir, "*")}, PollInterval: 10 * time.Second}, func(context.Context, *File) error {
			return answer
		}, zap.NewNop())
		require.NoError(t, err)
		next := func() time.Duration {
			w.Poll(t.Context())
			return w.untilNextPoll(time.Now()).Round(time.Second)
		}
		seconds := func(want ...int) {
			t.Helper()
			for _, s := range want {
				assert.Equal(t, time.Duration(s)*time.Second, next())
				time.Sleep(time.Duration(s) * time.Second)
			}
		}
		seconds(10)
		write(t, filepath.Join(dir, "poison"), "x")
		answer = &RetryError{Err: errors.New("later"), Rejected: true}
		seconds(1, 2, 4, 8, 10, 6) // the last two for 16 s
		answer = nil
		seconds(10)
		for i := range maxRejected {
			write(t, filepath.Join(dir, strconv.Itoa(i)), "x")
		}
		answer = &RetryError{Err: errors.New("later"), Rejected: true}
		seconds(1, 2, 4, 8)
		answer = nil
		time.Sleep(time.Minute)
		seconds(10)

		// A rejected version of a file that was read before, and that is gone.
		write(t, filepath.Join(dir, "0"), "xx")
		answer = &RetryError{Err: errors.New("later"), Rejected: true}
		seconds(1)
		require.NoError(t, os.Remove(filepath.Join(dir, "0")))
		seconds(10)
	})
}
