// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
)

var (
	// ErrClosed is returned by a Writer after Close.
	ErrClosed = errors.New("writer is closed")

	// ErrGone means that another process removed, moved, truncated or replaced a file or directory.
	ErrGone = errors.New("removed, moved, truncated or replaced by another process")

	// ErrNotDirectory means that a file or link has the name of a group's directory. A
	// retry does not help until it is removed.
	ErrNotDirectory = errors.New("not a directory")
)

// Writer writes records into files of a directory and its groups. It has a groupWriter for
// each group that has an incomplete file or was used lately. It is safe for concurrent use: groups are written
// concurrently, none waits for the disk because of another, and the records of one group are encoded concurrently.
type Writer struct {
	options Options

	mu      sync.Mutex // nothing waits while it is held: groupWriters are tried to be locked
	closed  bool
	groups  map[string]*groupWriter                // by the names of the group, joined with "/"
	open    *simplelru.LRU[*groupWriter, struct{}] // those that may have descriptors, with those in use more than Options.MaxOpen
	indexes *semaphore.Weighted                    // the memory in bytes of those of all incomplete files

	directories map[string]bool // of groups, for MaxGroups

	maintaining sync.Mutex
	recovered   bool        // all incomplete files were closed
	abandoned   atomic.Bool // since then one was left
}

// OpenWriter opens the directory, which it creates if it is missing, and closes the
// incomplete files in it and in its groups. An error says that it cannot be opened, or that no file may be
// created in it. There is no file, and no directory of a group, before the first record.
//
// The owner calls Tick every Options.TickInterval, Maintain every MaintainInterval, and Close.
func OpenWriter(options Options) (*Writer, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OpenDir == nil {
		options.OpenDir = OpenDir
	}
	dir, err := options.OpenDir(options.Directory)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkWritable(dir), dir.Close()); err != nil {
		return nil, err
	}
	w := &Writer{options: options, groups: map[string]*groupWriter{}, directories: map[string]bool{}, indexes: semaphore.NewWeighted(maxIndexes)}
	// An error would be of the size.
	w.open, _ = simplelru.NewLRU[*groupWriter, struct{}](math.MaxInt, nil)
	w.maintain(Retention{}) // Maintain retries failures
	return w, nil
}

// probe is the name of an empty file that checkWritable creates and removes.
const probe = ".otelcol-profiles-writable"

// checkWritable returns an error if no file may be created in dir. A full disk is no reason: it may have room later.
func checkWritable(dir Dir) error {
	f, err := dir.Create(probe)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("no file can be created in it: %w", err)
	case err == nil:
		_ = f.Close() // it is empty
	}
	_ = dir.Remove(probe) // otherwise the next start does
	return nil
}

// Append writes one record and returns when it is as safe as Options.Sync says. It does
// not keep the record.
//
// After an error the record is removed, at once or later. ErrInvalidRecord and
// ErrNotDirectory are permanent; all other errors may be retried.
func (w *Writer) Append(record Record) error {
	if slices.ContainsFunc(record.Group, func(name string) bool { return !IsGroupName(name) }) {
		return fmt.Errorf("%w: group %q has a name that GroupName does not return", ErrInvalidRecord, record.Group)
	}
	e := encoders.Get().(*encoder)
	defer e.release()
	encoded, err := e.encode(w.options.Format, record.Data)
	if err != nil {
		return err
	}
	for {
		g, err := w.groupWriter(record.Group)
		if err != nil {
			return err
		}
		err = g.append(record, encoded)
		w.limitOpen(g)
		if !errors.Is(err, ErrClosed) { // it was idle until now, and is made again
			return err
		}
	}
}

// groupWriter returns that of a group.
func (w *Writer) groupWriter(group []string) (*groupWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	key := strings.Join(group, "/")
	other := !w.admit(key)
	if other {
		group, key = []string{Other}, Other
	}
	g := w.groups[key]
	if g == nil {
		g = &groupWriter{
			options: &w.options, indexes: w.indexes, abandoned: &w.abandoned,
			group: group, path: w.pathOf(group...), names: names{format: w.options.Format}, other: other,
		}
		w.groups[key] = g
	}
	g.used, g.idle = true, false
	return g, nil
}

// limitOpen closes the descriptors of those groups that were used least recently, after another was used. Those in use keep them:
// they call it next.
func (w *Writer) limitOpen(used *groupWriter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open.Add(used, struct{}{})
	if w.open.Len() <= w.options.MaxOpen {
		return
	}
	for _, g := range w.open.Keys() { // the least recently used first
		if w.open.Len() > w.options.MaxOpen && g.park() {
			w.open.Remove(g)
		}
	}
}

// dropIdle forgets groups without a file that were not used since the last call.
func (w *Writer) dropIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, g := range w.groups {
		if g.idle && g.closeIdle() {
			delete(w.groups, key)
			w.open.Remove(g)
		}
		g.idle = true
	}
}

// holds reports whether an incomplete file is that of a group of this Writer, which may be parked.
func (w *Writer) holds(group []string, name Name) bool {
	w.mu.Lock()
	g := w.groups[strings.Join(group, "/")]
	w.mu.Unlock()
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.file != nil && g.file.name == name
}

// Tick closes files that are due, syncs, and retries failed writes.
func (w *Writer) Tick() {
	w.mu.Lock()
	groups := slices.Collect(maps.Values(w.groups))
	w.mu.Unlock()
	var ticks errgroup.Group
	ticks.SetLimit(concurrentTicks)
	for _, g := range groups {
		ticks.Go(func() error {
			g.report(panics.Guarded(func() error { g.tick(); return nil })())
			return nil
		})
	}
	_ = ticks.Wait() // no tick returns an error
}

// Close closes all files. With an error, incomplete files may stay for the next
// OpenWriter. Calling it again does nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	groups := slices.Collect(maps.Values(w.groups))
	w.mu.Unlock()
	errs := make([]error, len(groups))
	var closing errgroup.Group
	closing.SetLimit(concurrentTicks)
	for i, g := range groups {
		closing.Go(func() error {
			errs[i] = panics.Guarded(g.close)()
			return nil
		})
	}
	_ = closing.Wait() // errs has the errors

	w.maintain(Retention{}) // a reader in the same process may have stopped, and would not notice that files are removed
	return errors.Join(errs...)
}

func (w *Writer) pathOf(names ...string) string {
	return filepath.Join(append([]string{w.options.Directory}, names...)...)
}
