// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
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

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// ErrClosed is returned by a Writer after Close.
var ErrClosed = errors.New("writer is closed")

// maxIndexes bounds the memory in bytes for the indexes of all open files of a Writer.
const maxIndexes = 16 << 20

// Writer writes records into the partitions of a directory. It is safe for concurrent use: groups are written concurrently, and no group
// waits for the disk of another one.
type Writer struct {
	options Options
	id      string              // of the process, in the names of its files
	own     string              // of the directory, in the names of its compacted files
	memory  *semaphore.Weighted // of indexes

	mu        sync.Mutex // is not held during a call of the file system
	closed    bool
	groups    map[string]*groupWriter // by groupKey
	open      *simplelru.LRU[*groupWriter, struct{}]
	clock     time.Time // the latest hour of the clock: records do not go back behind it
	stamped   time.Time // in the name of the last file
	abandoned []*partialFile
	admitted  map[string]bool // groups that have a directory, for MaxGroups

	closing sync.WaitGroup // files
	join    sync.Mutex     // of the records of one file at a time, for the memory that takes
	ending  atomic.Bool    // files are closed as they are

	maintaining sync.Mutex
	recovered   atomic.Bool // all files that were left, also by processes before this one, were closed
}

// OpenWriter opens the directory, which it creates if it is missing, and closes the files that processes which do not run any more have
// left. An error says that it cannot be opened, or that no file may be created in it. There is no file before the first record.
//
// The owner calls Tick and CloseDue every Options.TickInterval, Maintain every MaintainInterval, and Close.
func OpenWriter(options Options) (*Writer, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OpenDir == nil {
		options.OpenDir = layout.OpenDir
	}
	absolute, err := filepath.Abs(options.Directory)
	if err != nil {
		return nil, err
	}
	options.Directory = absolute
	dir, err := options.OpenDir(options.Directory)
	if err != nil {
		return nil, err
	}
	err = checkWritable(dir)
	own := ""
	if err == nil {
		own, err = layout.DirectoryID(dir)
	}
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	open, err := simplelru.NewLRU[*groupWriter, struct{}](1<<30, nil)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		options: options, id: layout.NewID(), own: own, groups: map[string]*groupWriter{}, open: open, admitted: map[string]bool{},
		memory: semaphore.NewWeighted(maxIndexes),
	}
	w.maintain(Retention{}, true) // Maintain retries failures
	return w, nil
}

// probe is the name of an empty file that checkWritable creates and removes.
const probe = ".otelcol-profiles-writable"

// checkWritable returns an error if no file may be created in dir. A full disk is no reason: it may have room later.
func checkWritable(dir layout.Dir) error {
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

// Append writes one record and returns when it is as safe as Options.Sync says. It does not keep the record.
//
// After an error the record is removed, at once or later. segment.ErrInvalidRecord and ErrNotDirectory are permanent; all other errors
// may be retried.
func (w *Writer) Append(record Record) error {
	if slices.ContainsFunc(record.Group, func(name string) bool { return !layout.IsGroupDir(name) }) {
		return fmt.Errorf("%w: group %q has a name that layout.GroupDir does not return", segment.ErrInvalidRecord, record.Group)
	}
	e := segment.NewEncoder()
	defer e.Release()
	encoded, err := e.Encode(w.options.Format, record.Data)
	if err != nil {
		return err
	}
	hour, ahead := w.hourOf(&record)
	const most = 72 // hours that were compacted already, one after the other
	for range most {
		g, err := w.groupWriter(record.Group, hour)
		if err != nil {
			return err
		}
		err = g.append(&record, encoded)
		if taken, is := errors.AsType[*hourTakenError](err); is {
			hour = taken.next
			continue
		}
		if errors.Is(err, errDropped) {
			continue
		}
		if err == nil && ahead && w.options.RecordAhead != nil {
			w.options.RecordAhead(record)
		}
		return err
	}
	return &fs.PathError{Op: "open file in", Path: w.options.Directory, Err: errors.New("the hours to write to have been compacted or are locked by another process")}
}

// hourOf returns the hour to which a record belongs: that of the clock or of the record's end, whichever is later. ahead is set if the
// record's end is too far ahead for that.
func (w *Writer) hourOf(record *Record) (hour time.Time, ahead bool) {
	now := w.options.Now().UTC()
	w.mu.Lock()
	if hour := now.Truncate(time.Hour); hour.After(w.clock) {
		w.clock = hour
	}
	hour = w.clock
	w.mu.Unlock()
	if record.Entry == nil || record.Entry.End == 0 {
		return hour, false
	}
	end := time.Unix(0, int64(min(record.Entry.End, 1<<63-1))).UTC()
	if most := now.Add(maxAhead); end.After(most) {
		end, ahead = most, true
	}
	if ends := end.Truncate(time.Hour); ends.After(hour) {
		hour = ends
	}
	return hour, ahead
}

// groupWriter returns that of a group and hour.
func (w *Writer) groupWriter(group []string, hour time.Time) (*groupWriter, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, ErrClosed
	}
	other := !w.admit(strings.Join(group, "/"))
	if other {
		group = otherGroup(group)
	}
	key := groupKey(group, hour)
	g := w.groups[key]
	if g == nil {
		g = &groupWriter{writer: w, group: slices.Clone(group), hour: hour, other: other}
		w.groups[key] = g
	}
	return g, nil
}

// otherGroup returns the group with the same keys of which all values are Other.
func otherGroup(group []string) []string {
	other := make([]string, len(group))
	for i, name := range group {
		key, _, _ := strings.Cut(name, "=")
		other[i] = key + "=" + layout.Other
	}
	return other
}

// admit reports whether a group may have its own directory: it has one, or there are fewer than MaxGroups. w.mu is held.
func (w *Writer) admit(group string) bool {
	if group == "" || w.options.MaxGroups == 0 || w.admitted[group] {
		return true
	}
	if len(w.admitted) >= w.options.MaxGroups {
		return false
	}
	w.admitted[group] = true
	return true
}

// stem returns the beginning of a file's name. No other process or call returns the same.
func (w *Writer) stem(now time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now = now.UTC().Truncate(time.Millisecond)
	if !now.After(w.stamped) {
		now = w.stamped.Add(time.Millisecond)
	}
	w.stamped = now
	return now.Format(layout.CreatedTime) + "-" + w.id
}

// makeRoom counts the file of a groupWriter, whose lock is held, as an open one. If there are too many, it closes the descriptors of the
// least recently used one, unless all of these are in use.
func (w *Writer) makeRoom(g *groupWriter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open.Add(g, struct{}{})
	for range w.open.Len() {
		if w.open.Len() <= w.options.MaxOpen {
			return
		}
		least, _, _ := w.open.RemoveOldest()
		if least == g || !least.mu.TryLock() {
			w.open.Add(least, struct{}{})
			continue
		}
		w.mu.Unlock()
		if least.file != nil {
			least.file.park()
		}
		least.mu.Unlock()
		w.mu.Lock()
	}
}

// abandon keeps a file, with its lock, for maintenance to recover.
func (w *Writer) abandon(f *partialFile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.abandoned = append(w.abandoned, f)
}

func (w *Writer) tooManyAbandoned() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.abandoned) >= max(1, w.options.MaxOpen)
}

// Tick syncs, and retries failed writes.
func (w *Writer) Tick() {
	w.eachGroup(concurrentTicks, (*groupWriter).tick)
}

// CloseDue closes files that are due. It may take long, since it joins their records, until EndSoon.
func (w *Writer) CloseDue() {
	w.eachGroup(concurrentCloses, (*groupWriter).closeDue)
}

// eachGroup calls do for each group, for n at a time.
func (w *Writer) eachGroup(n int, do func(*groupWriter, time.Time)) {
	now := w.options.Now()
	w.mu.Lock()
	groups := slices.Collect(maps.Values(w.groups))
	w.mu.Unlock()
	var calls errgroup.Group
	calls.SetLimit(n)
	for _, g := range groups {
		calls.Go(func() error {
			if err := panics.Guarded(func() error { do(g, now); return nil })(); err != nil {
				w.options.Failed(err)
			}
			return nil
		})
	}
	_ = calls.Wait() // none returns an error
	for _, g := range groups {
		w.drop(g, now, false)
	}
}

// EndSoon makes closing quick, also in calls of CloseDue and Append that have begun: Close will be called.
func (w *Writer) EndSoon() { w.ending.Store(true) }

// joining returns what joins the records of a file, nil if they stay as they are.
func (w *Writer) joining(f *partialFile) func() (bool, error) {
	if f.Reason == ByError || w.ending.Load() {
		return nil
	}
	return func() (bool, error) { return f.join(w) }
}

// drop forgets a groupWriter without a file, whose hour is over.
func (w *Writer) drop(g *groupWriter, now time.Time, force bool) {
	if !force && now.Before(g.hour.Add(time.Hour)) || !g.mu.TryLock() {
		return
	}
	defer g.mu.Unlock()
	if g.file != nil {
		return
	}
	g.dropped = true
	w.mu.Lock()
	defer w.mu.Unlock()
	if key := groupKey(g.group, g.hour); w.groups[key] == g {
		delete(w.groups, key)
	}
	w.open.Remove(g)
}

// Close closes all files, as they are. With an error, some stay for the next OpenWriter. Calling it again does nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil
	}
	w.closed = true
	w.EndSoon()
	groups := w.groups
	w.groups = map[string]*groupWriter{}
	w.mu.Unlock()
	var errs []error
	for _, g := range groups {
		if err := panics.Guarded(func() error { g.shutdown(); return nil })(); err != nil {
			errs = append(errs, err)
		}
	}
	w.closing.Wait()
	w.maintain(Retention{}, true)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.abandoned {
		f.release()
		errs = append(errs, &fs.PathError{Op: "close", Path: f.Path, Err: errors.New("the file could not be closed; the next start recovers it")})
	}
	w.abandoned = nil
	return errors.Join(errs...)
}
