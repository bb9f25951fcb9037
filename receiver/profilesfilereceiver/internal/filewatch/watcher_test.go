// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	profiletest.WriteAt(t, path, []byte(content), time.Now().Add(-time.Hour))
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

// errInProgress is the answer of a handler that calls Done later.
var errInProgress = errors.New("in progress")

// testWatcher is a Watcher of a directory, which it polls each 10 s and whose files it handles with the answers of a test.
type testWatcher struct {
	*Watcher
	dir     string
	answers map[string]error // by the name of the file
	files   map[string]*File // the last that were handled
	times   map[string][]int // when they were handled, in seconds after the start
	start   time.Time
	handled []string // by the last poll
	logs    *observer.ObservedLogs
}

func newTest(t *testing.T, dir string, kept *profiletest.Storage) *testWatcher {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	w := &testWatcher{dir: dir, answers: map[string]error{}, files: map[string]*File{}, times: map[string][]int{}, start: time.Now(), logs: logs}
	config := Config{Include: []string{filepath.Join(dir, "**")}, PollInterval: 10 * time.Second}
	if kept != nil {
		config.Storage = &profiletest.StorageID
	}
	w.Watcher = New(config, func(_ context.Context, f *File) {
		w.handled = append(w.handled, f.Relative)
		w.files[f.Relative] = f
		w.times[f.Relative] = append(w.times[f.Relative], int(time.Since(w.start)/time.Second))
		if answer := w.answers[f.Relative]; !errors.Is(answer, errInProgress) {
			w.Done(f, answer)
		}
	}, zap.New(core))
	if kept != nil {
		require.NoError(t, w.load(t.Context(), kept.Host(), component.MustNewID("test")))
	}
	return w
}

func (w *testWatcher) write(t *testing.T, names ...string) {
	for _, name := range names {
		write(t, filepath.Join(w.dir, name), name)
	}
}

// poll returns the names of the files that a poll handles.
func (w *testWatcher) poll(t *testing.T) []string {
	w.handled = nil
	w.Poll(t.Context())
	return w.handled
}

// run runs the Watcher for a time.
func (w *testWatcher) run(t *testing.T, during time.Duration) {
	require.NoError(t, w.Start(t.Context(), componenttest.NewNopHost(), component.MustNewID("test")))
	time.Sleep(during)
	require.NoError(t, w.Shutdown(t.Context()))
}

func TestSameContent(t *testing.T) {
	now := version{Size: 1, ModTime: 2, Inode: 3, ChangeTime: 4}
	assert.True(t, now.sameContent(version{Size: 1, ModTime: 2, Inode: 9, ChangeTime: 4}), "after a mount")
	assert.True(t, now.sameContent(version{Size: 1, ModTime: 2}), "stored before inodes were")
	assert.False(t, now.sameContent(version{Size: 1, ModTime: 3, Inode: 3, ChangeTime: 4}))
	assert.False(t, now.sameContent(version{Size: 2, ModTime: 2, Inode: 3, ChangeTime: 4}))
}

// A file is handled again after a RetryError, which is logged once, and not after others until it changes.
func TestResultsOfHandling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTest(t, t.TempDir(), nil)
		w.answers = map[string]error{"a": &RetryError{Err: errors.New("later")}, "b": errors.New("never"), "c": ErrChanged, "e": errInProgress}
		w.write(t, "a", "b", "c", "d", "e", "x.part", ".hidden")
		write(t, filepath.Join(w.dir, "empty"), "")
		assert.Equal(t, []string{"a", "b", "c", "d", "e"}, w.poll(t))
		time.Sleep(minRetryDelay)
		assert.Equal(t, []string{"c", "a"}, w.poll(t), "retries come last")
		assert.Equal(t, 1, w.logs.FilterMessage("Cannot process file; will retry").Len())
		assert.Equal(t, 1, w.logs.FilterMessage("Skipping file until it changes").Len())
		assert.Equal(t, Backlog{Files: 2, Bytes: 2, Oldest: w.files["a"].Modified}, w.Backlog())
		w.write(t, "a", "a") // the time differs
		assert.Equal(t, []string{"c", "a"}, w.poll(t))
		time.Sleep(minRetryDelay)
		assert.Equal(t, []string{"c", "a"}, w.poll(t), "failures of another version do not delay its retries")
		clear(w.answers)
		time.Sleep(2 * minRetryDelay)
		assert.Equal(t, []string{"c", "a"}, w.poll(t))
		write(t, filepath.Join(w.dir, "b"), "bb")
		assert.Equal(t, []string{"b"}, w.poll(t))
		assert.Empty(t, w.poll(t))
		w.Done(w.files["e"], nil)
		assert.Empty(t, w.poll(t))
		assert.Zero(t, w.Backlog())
	})
}

// The removal of a file by the Handler is no loss, and its name can be used again. The removal of a file that waits is one.
func TestRemovedFiles(t *testing.T) {
	w := newTest(t, t.TempDir(), nil)
	var missing []string
	unhandled := 0
	w.Polled = func(n int) { unhandled = n }
	w.Missing = func(files []*File) {
		for _, file := range files {
			missing = append(missing, file.Relative)
		}
	}
	w.write(t, "read", "waits", "waits too")
	w.answers = map[string]error{"read": errInProgress, "waits": &RetryError{Err: os.ErrPermission}, "waits too": &RetryError{Err: os.ErrPermission}}
	assert.Equal(t, []string{"read", "waits", "waits too"}, w.poll(t))
	require.NoError(t, os.Remove(filepath.Join(w.dir, "read")))
	w.Done(w.files["read"], ErrRemoved)
	require.NoError(t, os.Remove(filepath.Join(w.dir, "waits")))
	require.NoError(t, os.Rename(filepath.Join(w.dir, "waits too"), filepath.Join(w.dir, "renamed")))
	assert.Equal(t, []string{"renamed"}, w.poll(t))
	assert.Equal(t, []string{"waits"}, missing)
	w.write(t, "read")
	assert.Equal(t, []string{"read"}, w.poll(t))
	w.Done(w.files["read"], nil)
	w.poll(t)
	assert.Zero(t, unhandled)
}

// The removal of a file that waits is reported even if the Watcher stops before its next poll.
func TestShutdownReportsRemovedFiles_R20(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTest(t, t.TempDir(), nil)
		var missing []string
		w.Missing = func(files []*File) { missing = append(missing, files[0].Relative) }
		w.write(t, "waits")
		w.answers = map[string]error{"waits": &RetryError{Err: os.ErrPermission}}
		require.NoError(t, w.Start(t.Context(), componenttest.NewNopHost(), component.MustNewID("test")))
		time.Sleep(20 * time.Second)
		require.Equal(t, 1, w.Backlog().Files)
		require.NoError(t, os.Remove(filepath.Join(w.dir, "waits")))
		time.Sleep(time.Millisecond) // the next poll is later
		require.NoError(t, w.Shutdown(t.Context()))
		assert.Equal(t, []string{"waits"}, missing)
	})
}

// A file that is still written is not handled, nor does the retry of another make it complete.
func TestGrowingFile_R17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTest(t, t.TempDir(), nil)
		w.write(t, "poison")
		w.answers["poison"] = &RetryError{Err: errors.New("later")}
		require.NoError(t, w.Start(t.Context(), componenttest.NewNopHost(), component.MustNewID("test")))
		for i := range 5 {
			write(t, filepath.Join(w.dir, "growing"), strconv.Itoa(i))
			require.NoError(t, os.Chtimes(filepath.Join(w.dir, "growing"), time.Now(), time.Now()))
			time.Sleep(9 * time.Second)
		}
		time.Sleep(20 * time.Second)
		require.NoError(t, w.Shutdown(t.Context()))
		assert.Equal(t, []int{50}, w.times["growing"])
		assert.Equal(t, []int{0, 1, 3, 7, 15, 31, 61}, w.times["poison"])
		profiletest.Injected(t, "1 file that grows while another is retried")
	})
}

// While the pipeline rejects everything, most files wait.
func TestRejectedFilesHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTest(t, t.TempDir(), nil)
		for i := range 2*maxRejected + 1 {
			name := strconv.Itoa(100 + i)
			w.write(t, name)
			w.answers[name] = &RetryError{Err: errors.New("later"), Rejected: true}
		}
		w.run(t, 2*time.Second)
		assert.Equal(t, []int{0}, w.times["100"], "after those that were never tried")
		assert.Equal(t, []int{1}, w.times["110"])
		assert.Empty(t, w.times["120"])
		clear(w.answers)
		w.poll(t)
		time.Sleep(time.Minute)
		w.poll(t)
		assert.Zero(t, w.Backlog())
	})
}

// A slow Handler does not delay the next poll.
func TestSlowHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTest(t, t.TempDir(), nil)
		handle := w.handle
		w.handle = func(ctx context.Context, file *File) {
			if file.Relative == "a" {
				w.write(t, "b")
			}
			time.Sleep(time.Minute)
			handle(ctx, file)
		}
		w.write(t, "a")
		w.run(t, 3*time.Minute)
		assert.Equal(t, map[string][]int{"a": {60}, "b": {120}}, w.times)
	})
}

// A path without wildcards is a glob, too, and may be that of a hidden file.
func TestGlobs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "excluded", ".hidden", "c.tmp"} {
		write(t, filepath.Join(dir, name), "content")
	}
	for include, want := range map[string][]string{
		"/a": {"a"}, "/[ab]": {"a", "b"}, "/{a,b}": {"a", "b"}, "/.hidden": {".hidden"}, "/none": nil, "/*": {"a", "b"}, "/none/*": nil, "/ab*": nil, "/**": {"a", "b"},
	} {
		f := newFinder(Config{Include: []string{dir + include, dir + include}, Exclude: []string{dir + "/x/**", dir + "/e*"}}, zap.NewNop())
		files, _ := f.find()
		var names []string
		for _, file := range files {
			names = append(names, file.Relative)
		}
		assert.Equal(t, want, names, include)
	}
}

// 10,000 files are each read once, oldest first, with few and small writes to the storage.
func TestManyFiles_R17(t *testing.T) {
	kept, sets, largest := &profiletest.Storage{}, 0, 0
	kept.Before = func(o *storage.Operation) error {
		if o.Type == storage.Set {
			sets, largest = sets+1, max(largest, len(o.Value))
		}
		return nil
	}
	w := newTest(t, t.TempDir(), kept)
	n := profiletest.Rounds(t, 1000, 10_000)
	old := time.Now().Add(-time.Hour)
	var names []string
	for i := range n {
		name := filepath.Join(strconv.Itoa(i%50), strconv.Itoa(i))
		w.write(t, name)
		at := old.Add(time.Duration(i) * time.Millisecond)
		require.NoError(t, os.Chtimes(filepath.Join(w.dir, name), at, at))
		names = append(names, name)
	}
	assert.Equal(t, names, w.poll(t))
	assert.Empty(t, w.poll(t))
	assert.Equal(t, n, sets)
	assert.Less(t, largest, 300, "bytes of a write")
	profiletest.Account(t, fmt.Sprintf("%d files", n), n, len(names), 0)
}

// A file that goes away, or becomes another, after it was found is not what was found.
func TestReadOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	f := newFinder(Config{Include: []string{filepath.Join(dir, "**")}}, zap.NewNop())
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

// The progress of a version is stored until the version is handled or removed. A damaged checkpoint is none.
func TestProgressOfAFile_R17(t *testing.T) {
	kept, dir := &profiletest.Storage{}, t.TempDir()
	progress := func(w *testWatcher) (n int) {
		w.Progress(w.files["a"], &n)
		return n
	}
	w := newTest(t, dir, kept)
	w.write(t, "a")
	for restart := range 3 {
		w.answers["a"] = errInProgress
		assert.Equal(t, []string{"a"}, w.poll(t))
		assert.Equal(t, restart, progress(w))
		w.SaveProgress(w.files["a"], restart+1)
		w = newTest(t, dir, kept)
	}
	assert.Equal(t, []string{"a"}, w.poll(t))
	assert.Zero(t, progress(w), "it is handled")
	write(t, filepath.Join(dir, "a"), "another version")
	w.answers["a"] = errInProgress
	assert.Equal(t, []string{"a"}, w.poll(t))
	assert.Zero(t, progress(w))
	w.SaveProgress(w.files["a"], 1)
	for path := range kept.Values() {
		require.NoError(t, kept.Set(t.Context(), path, []byte("damaged")))
	}
	w = newTest(t, dir, kept)
	assert.Equal(t, 1, w.logs.FilterMessage("Cannot load file checkpoints; re-reading files without one").Len())
	w.answers["a"] = errInProgress
	assert.Equal(t, []string{"a"}, w.poll(t))
	assert.Zero(t, progress(w))
	w.SaveProgress(w.files["a"], 1)
	w.Done(w.files["a"], ErrRemoved)
	assert.Empty(t, kept.Values(), "nothing is stored of a removed file")
	profiletest.Injected(t, "1 damaged checkpoint")
}

// The checkpoint of a file that is gone for long is dropped, so that they do not grow.
func TestCheckpointsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, dir := &profiletest.Storage{}, t.TempDir()
		const odd = "odd \xff\"" // not UTF-8
		w := newTest(t, dir, kept)
		w.write(t, odd, "a", "b")
		assert.Equal(t, []string{"a", "b", odd}, w.poll(t))
		for _, name := range []string{odd, "a"} {
			require.NoError(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, ".hidden"+name)))
		}
		time.Sleep(forgetAfter / 2)
		assert.Empty(t, w.poll(t))
		require.NoError(t, os.Rename(filepath.Join(dir, ".hidden"+odd), filepath.Join(dir, odd)))
		w = newTest(t, dir, kept) // a restart
		time.Sleep(forgetAfter / 2)
		assert.Empty(t, w.poll(t), "they may come back")
		assert.Len(t, kept.Values(), 3)
		time.Sleep(forgetAfter / 2)
		assert.Empty(t, w.poll(t))
		stored := slices.Sorted(maps.Keys(kept.Values()))
		assert.Equal(t, []string{filepath.Join(dir, "b"), filepath.Join(dir, odd)}, stored)
	})
}

// Checkpoints that cannot be stored are stored by a later poll.
func TestStorageThatFails(t *testing.T) {
	kept := &profiletest.Storage{}
	w := newTest(t, t.TempDir(), kept)
	w.write(t, "a")
	var failure error = os.ErrPermission
	kept.Before = func(*storage.Operation) error { return failure }
	assert.Equal(t, []string{"a"}, w.poll(t))
	assert.Empty(t, kept.Values())
	assert.NotZero(t, w.logs.FilterMessage("Cannot save file checkpoints").Len())
	failure = nil
	assert.Empty(t, w.poll(t))
	assert.Len(t, kept.Values(), 1)
}

// StartAtEnd skips the files of the first poll, and no others, also after a restart.
func TestStartAtEnd(t *testing.T) {
	dir, kept := t.TempDir(), &profiletest.Storage{}
	for i, name := range []string{"old", "first", "second"} {
		w := newTest(t, dir, kept)
		w.StartAtEnd = true
		w.write(t, name)
		assert.Equal(t, []string{name}[:min(i, 1)], append([]string{}, w.poll(t)...))
	}
}

// A directory that cannot be listed is reported once, and its files are not gone.
func TestDirectoryThatCannotBeListed(t *testing.T) {
	w := newTest(t, filepath.Join(t.TempDir(), "dir"), nil)
	polled := 0
	w.Polled = func(int) { polled++ }
	for range 3 {
		w.poll(t)
	}
	assert.Zero(t, polled)
	assert.Equal(t, 1, w.logs.FilterMessage("Cannot list directory; will retry").Len())
	w.write(t, "a")
	w.answers["a"] = &RetryError{Err: os.ErrPermission}
	assert.Equal(t, []string{"a"}, w.poll(t))
	require.NoError(t, os.Rename(w.dir, w.dir+"-away"))
	w.poll(t)
	assert.Equal(t, 1, w.Backlog().Files)
	assert.Equal(t, 2, w.logs.FilterMessage("Cannot list directory; will retry").Len())
	assert.Equal(t, 1, polled)
}

func TestLinksAndRenamedFilesAreHandledOnce_R17(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system has no inodes")
	}
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			kept, dir := &profiletest.Storage{}, t.TempDir()
			w := newTest(t, dir, kept)
			poll := func() []string {
				if restarts {
					w = newTest(t, dir, kept)
				}
				return w.poll(t)
			}
			w.write(t, "first")
			require.NoError(t, os.Link(filepath.Join(dir, "first"), filepath.Join(dir, "hard")))
			require.NoError(t, os.Symlink("first", filepath.Join(dir, "symbolic")))
			w.answers["first"] = &RetryError{Err: errors.New("later")}
			assert.Equal(t, []string{"first"}, w.poll(t))
			clear(w.answers)
			time.Sleep(minRetryDelay)
			assert.Equal(t, []string{"first"}, poll())
			assert.Empty(t, poll())
			// Rotation: each name is that of another file now. Between directories, too.
			for _, moved := range [][]string{{"hard", "hard.1"}, {"hard.1", "hard.2", "hard", "hard.1"}, {"hard", "done/hard"}} {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, "done"), 0o700))
				for i := 0; i < len(moved); i += 2 {
					require.NoError(t, os.Rename(filepath.Join(dir, moved[i]), filepath.Join(dir, moved[i+1])))
				}
				assert.Empty(t, poll())
				w.write(t, "hard")
				assert.Equal(t, []string{"hard"}, poll())
				assert.Empty(t, poll())
			}
			require.NoError(t, os.Link(filepath.Join(dir, "hard.1"), filepath.Join(dir, "done", "link")))
			assert.Empty(t, poll())
			assert.Zero(t, w.Backlog())
			profiletest.Injected(t, "4 renamed files, 1 link")
		})
	}
}

// TestPanicsEndNoGoroutine_A11: neither one while looking for files nor one while handling a file, which is handled again.
func TestPanicsEndNoGoroutine_A11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTest(t, t.TempDir(), nil)
		handle, panicked := w.handle, map[string]int{}
		w.handle = func(ctx context.Context, f *File) {
			if panicked[f.Relative]++; f.Relative == "a" && panicked["a"] <= 2 {
				panic("out of the blue")
			}
			handle(ctx, f)
		}
		polls := 0
		w.Polled = func(int) {
			if polls++; polls == 2 {
				panic("out of the blue")
			}
		}
		w.write(t, "a", "b")
		w.run(t, time.Minute)
		assert.Equal(t, map[string][]int{"a": {3}, "b": {0}}, w.times, "after a second, and two more")
		assert.Equal(t, 2, w.logs.FilterMessage("Panic while handling a file; will retry").Len())
		assert.Equal(t, 1, w.logs.FilterMessage("Panic in the background; looking for files again after the poll interval").Len())
		assert.Greater(t, polls, 4)
		assert.Zero(t, w.Backlog().Files)
	})
}
