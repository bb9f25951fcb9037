// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

var (
	// ErrClosed is returned by a Writer after Close.
	ErrClosed = errors.New("writer is closed")

	// ErrGone: another process removed, moved, truncated or replaced a file or directory.
	ErrGone = errors.New("removed, moved, truncated or replaced by another process")

	// ErrNotDirectory: a file or link has the name of a group's directory. A retry does not
	// help until it is removed.
	ErrNotDirectory = errors.New("not a directory")

	// ErrInvalidRecord: no file can hold the record. A retry does not help.
	ErrInvalidRecord = errors.New("invalid record")
)

// Sync says when records are put on the disk. A file is always synced before it gets its
// final name.
type Sync int

const (
	// SyncNone leaves it to the operating system.
	SyncNone Sync = iota
	// SyncInterval syncs within Options.SyncInterval after a record was written.
	SyncInterval
	// SyncRecord syncs before Append returns.
	SyncRecord
)

const (
	// maxTick is the longest interval between calls of Tick.
	maxTick = time.Second
	// concurrentTicks is how many groups Tick works on at a time.
	concurrentTicks = 8
	// MaintainInterval is how often Maintain must be called.
	MaintainInterval = 10 * time.Second
)

// Options of a Writer. Its functions are called while locks are held: they must be quick
// and must not call the Writer.
type Options struct {
	Directory string
	Format    Format
	Rotation  Rotation
	Sync      Sync
	// SyncInterval is for Sync SyncInterval only.
	SyncInterval time.Duration
	// Levels is how many subdirectories, one inside the other, a group has. Repair and
	// retention look that deep.
	Levels int
	// MaxOpen is how many groups may have an open file. Each needs three descriptors.
	MaxOpen   int
	Retention Retention

	// RecordWritten gets the size of a record in bytes, as it was given and on disk.
	RecordWritten func(raw, stored int64)
	FileClosed    func(ClosedFile)
	FileRecovered func(RecoveredFile)
	// FileRemoved is called for each file that Retention removed.
	FileRemoved func(path string, size int64)
	// Failed gets the errors that no caller of Append gets. The failed operation is
	// retried. Most are, or wrap, an *fs.PathError.
	Failed func(error)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens directories; nil is OpenDir of this package.
	OpenDir func(path string, group ...string) (Dir, error)
}

func (o *Options) validate() error {
	if err := o.Format.validate(); err != nil {
		return err
	}
	if o.Sync == SyncInterval && o.SyncInterval <= 0 {
		return fmt.Errorf("sync interval is %v: must be more than 0", o.SyncInterval)
	}
	if o.Levels < 0 || o.MaxOpen < 1 {
		return fmt.Errorf("levels is %d, open groups is %d: must be 0 or more, and 1 or more", o.Levels, o.MaxOpen)
	}
	return nil
}

func (o *Options) setDefaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OpenDir == nil {
		o.OpenDir = OpenDir
	}
}

func (o *Options) tickInterval() time.Duration {
	interval := maxTick
	if o.Rotation.MaxAge > 0 {
		interval = min(interval, o.Rotation.MaxAge)
	}
	if o.Sync == SyncInterval {
		interval = min(interval, o.SyncInterval)
	}
	return max(interval, time.Millisecond)
}

// Record is what Append writes at once, completely or not at all.
type Record struct {
	Data []byte
	// Group holds the names of its subdirectories, one inside the other.
	Group []string
	// Content "" is that of Options.Format. Other contents go to files of their own.
	Content Content
	Summary Summary
}

// Writer writes records into files of a directory and its groups. For each group in use
// it has a groupWriter. It is safe for concurrent use: groups are written concurrently,
// and the records of one group are encoded concurrently.
type Writer struct {
	options Options

	mu       sync.Mutex
	released sync.Cond // a groupWriter has fewer users
	closed   bool
	groups   map[groupKey]*groupWriter
	uses     uint64

	maintaining sync.Mutex
	recovered   bool // all incomplete files were closed
}

type groupKey struct {
	path    string // names of the group, joined with "/"
	content Content
}

// OpenWriter opens the directory, which it creates if it is missing, and closes the
// incomplete files in it and in its groups. It creates no file, and no directory of a
// group, before the first record.
//
// The owner calls Tick every TickInterval, Maintain every MaintainInterval, and Close.
func OpenWriter(options Options) (*Writer, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	options.setDefaults()
	dir, err := options.OpenDir(options.Directory)
	if err != nil {
		return nil, err
	}
	if err := dir.Close(); err != nil {
		return nil, err
	}
	w := &Writer{options: options, groups: map[groupKey]*groupWriter{}}
	w.released.L = &w.mu
	w.recoverFiles()
	return w, nil
}

// TickInterval is how often Tick must be called.
func (w *Writer) TickInterval() time.Duration { return w.options.tickInterval() }

// Append writes one record and returns when it is as safe as Options.Sync says. It does
// not keep the record.
//
// With an error the record is not in the file. ErrInvalidRecord and ErrNotDirectory are
// permanent; all other errors may be retried.
func (w *Writer) Append(record Record) error {
	format := w.options.Format
	if record.Content != "" && record.Content != format.Content {
		format = Format{Content: record.Content, Compression: format.Compression}
	}
	if err := format.Content.checkRecord(record.Data); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidRecord, err)
	}
	e, err := encode(format, record.Data)
	defer e.release()
	if err != nil {
		return fmt.Errorf("compress record of %d bytes: %w", len(record.Data), err)
	}
	g, err := w.acquire(format, record.Group)
	if err != nil {
		return err
	}
	defer w.release(g)
	return g.append(record, e)
}

// acquire returns the groupWriter of a group, which stays open until it is released. If
// too many are open, it closes the least recently used one first.
func (w *Writer) acquire(format Format, group []string) (*groupWriter, error) {
	key := groupKey{path: strings.Join(group, "/"), content: format.Content}
	w.mu.Lock()
	defer w.mu.Unlock()
	failed := 0
	for {
		if w.closed {
			return nil, ErrClosed
		}
		g := w.groups[key]
		if g == nil && !isGroup(group) {
			return nil, fmt.Errorf("%w: group %q has a name that GroupName does not return", ErrInvalidRecord, group)
		}
		if g == nil && len(w.groups) < w.options.MaxOpen {
			g = &groupWriter{
				options: &w.options, group: group, names: names{format: format},
				path: filepath.Join(append([]string{w.options.Directory}, group...)...),
			}
			w.groups[key] = g
		}
		if g != nil {
			w.use(g)
			return g, nil
		}
		candidateKey, candidate := w.leastRecentlyUsed()
		if candidate == nil {
			w.released.Wait()
			continue
		}
		w.use(candidate) // a failed one is the last to be tried again
		w.mu.Unlock()
		err := candidate.closeFiles(ByOpenFiles)
		w.mu.Lock()
		candidate.users--
		w.closeIdle(candidateKey, candidate)
		w.released.Broadcast()
		if err != nil {
			if failed++; failed >= w.options.MaxOpen {
				return nil, fmt.Errorf("group %s: %d other groups have open files that cannot be closed: %w", key.path, failed, err)
			}
		}
	}
}

func (w *Writer) use(g *groupWriter) {
	w.uses++
	g.lastUse = w.uses
	g.users++
}

// leastRecentlyUsed returns the LRU candidate among those without users, or nil.
func (w *Writer) leastRecentlyUsed() (key groupKey, candidate *groupWriter) {
	for k, g := range w.groups {
		if g.users == 0 && (candidate == nil || g.lastUse < candidate.lastUse) {
			key, candidate = k, g
		}
	}
	return key, candidate
}

func (w *Writer) release(g *groupWriter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g.users--
	w.released.Broadcast()
}

// closeIdle closes a groupWriter without users and files. w.mu is held: it has no I/O to
// do but to close a directory.
func (w *Writer) closeIdle(key groupKey, g *groupWriter) {
	if g.users > 0 || w.groups[key] != g || !g.idle() {
		return
	}
	delete(w.groups, key)
	g.report(g.close())
}

// Tick closes files that are due, syncs, and retries what failed before.
func (w *Writer) Tick() {
	w.mu.Lock()
	all := make(map[groupKey]*groupWriter, len(w.groups))
	for key, g := range w.groups {
		g.users++ // without a new lastUse
		all[key] = g
	}
	w.mu.Unlock()
	var ticks errgroup.Group
	ticks.SetLimit(concurrentTicks)
	for key, g := range all {
		ticks.Go(func() error {
			g.tick()
			w.mu.Lock()
			defer w.mu.Unlock()
			g.users--
			if len(g.group) > 0 {
				w.closeIdle(key, g)
			}
			w.released.Broadcast()
			return nil
		})
	}
	_ = ticks.Wait() // no tick returns an error
}

// Maintain applies Retention, and retries to recover incomplete files. It may take long.
func (w *Writer) Maintain() {
	w.maintaining.Lock()
	defer w.maintaining.Unlock()
	if !w.recovered {
		w.recoverFiles()
	}
	if w.options.Retention != (Retention{}) {
		if err := w.removeOld(); err != nil {
			w.options.Failed(err)
		}
	}
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
	for _, g := range w.groups {
		for g.users > 0 {
			w.released.Wait()
		}
	}
	groups := w.groups
	w.groups = nil
	w.mu.Unlock()
	var errs []error
	for _, g := range groups {
		errs = append(errs, g.close())
	}
	w.Maintain()
	return errors.Join(errs...)
}

// walk visits the directory and those of all groups; a group comes before the directory
// that it is in. An error in one directory does not stop it.
func (w *Writer) walk(visit func(dir Dir, group []string) error) error {
	dir, err := w.options.OpenDir(w.options.Directory)
	if err != nil {
		return err
	}
	return errors.Join(w.walkDir(dir, nil, visit), dir.Close())
}

func (w *Writer) walkDir(dir Dir, group []string, visit func(dir Dir, group []string) error) error {
	var errs []error
	if len(group) < w.options.Levels {
		list, err := dir.List()
		errs = append(errs, w.pathError("list", group, err))
		for _, name := range list {
			if !groupName.MatchString(name) {
				continue
			}
			info, err := dir.Lstat(name)
			if err == nil && !info.IsDir() {
				continue
			}
			var child Dir
			if err == nil {
				child, err = dir.OpenChild(name)
			}
			switch {
			case err == nil:
				errs = append(errs, w.walkDir(child, append(group[:len(group):len(group)], name), visit))
				_ = child.Close() // nothing was written through it that was not synced
			case !errors.Is(err, fs.ErrNotExist): // it may have been removed
				errs = append(errs, w.pathError("open", append(group[:len(group):len(group)], name), err))
			}
		}
	}
	return errors.Join(append(errs, visit(dir, group))...)
}

// pathError adds the operation and the path to an error; it is nil if err is nil.
func (w *Writer) pathError(op string, names []string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: w.pathOf(names...), Err: err}
}

func (w *Writer) pathOf(names ...string) string {
	return filepath.Join(append([]string{w.options.Directory}, names...)...)
}
