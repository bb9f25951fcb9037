// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// groupWriter writes the records of a group in one hour. Its file is open, or abandoned: then the Writer recovers it.
type groupWriter struct {
	writer *Writer
	group  []string
	hour   time.Time
	other  bool // it is that of the group Other

	mu      sync.Mutex
	file    *partialFile   // nil until the next record
	closing []*partialFile // to be closed once mu is free
	// next is the hour to take, if that of the groupWriter has been compacted; else it is zero.
	next    time.Time
	dropped bool // the Writer does not have it any more
}

// hourTakenError says that a record must go to a later hour.
type hourTakenError struct{ next time.Time }

func (e *hourTakenError) Error() string { return "the hour has been compacted" }

var errDropped = errors.New("group writer was dropped")

func groupKey(group []string, hour time.Time) string {
	return strings.Join(group, "/") + "/" + hour.Format(layout.HourPath)
}

// inside is the path of the directory, below that of the store.
func (g *groupWriter) inside() []string {
	return append(g.group[:len(g.group):len(g.group)], strings.Split(g.hour.Format(layout.HourPath), "/")...)
}

func (g *groupWriter) path() string {
	return filepath.Join(append([]string{g.writer.options.Directory}, g.inside()...)...)
}

// append writes a record. After an error, the record is removed at once or by a later call.
func (g *groupWriter) append(record *Record, encoded []byte) error {
	g.mu.Lock()
	defer g.unlock()
	if g.dropped {
		return errDropped
	}
	if !g.next.IsZero() {
		return &hourTakenError{g.next}
	}
	options := &g.writer.options
	now, size := options.Now(), int64(len(encoded))
	g.writer.makeRoom(g)
	if err := g.openFile(size, now); err != nil {
		if _, taken := errors.AsType[*hourTakenError](err); taken {
			return err
		}
		return &fs.PathError{Op: "open file in", Path: g.path(), Err: err}
	}
	f := g.file
	if err := g.write(encoded, now); err != nil {
		return &fs.PathError{Op: "write", Path: f.Path, Err: err}
	}
	f.accept(record, size, now)
	if reason := g.due(f, anyRecord, now); reason != "" {
		g.close(reason)
	}
	if options.RecordWritten != nil {
		options.RecordWritten(*record, size, g.other)
	}
	return nil
}

// openFile makes g.file a file that a record of size bytes can be written to.
func (g *groupWriter) openFile(size int64, now time.Time) error {
	if f := g.file; f != nil {
		err := f.reopen(g.writer.options.OpenDir)
		if err == nil {
			err = f.checkPath()
		}
		switch {
		case errors.Is(err, errRecovered):
			g.close(ByError)
		case errors.Is(err, ErrGone):
			g.fail("find", f, fmt.Errorf("file with %d records: %w; creating another file", f.Records, err))
			g.close(ByError) // it may be in a directory that was moved
		case err != nil:
			return err
		default:
			if reason := g.due(f, size, now); reason != "" {
				g.close(reason)
				break
			}
			return f.truncate()
		}
	}
	err := g.create(now)
	if errors.Is(err, fs.ErrNotExist) {
		err = g.create(now) // another process removed the empty directory after it was opened
	}
	return err
}

// create opens the directory, which it locks, and creates a file in it.
func (g *groupWriter) create(now time.Time) error {
	if g.writer.tooManyAbandoned() {
		return errors.New("too many files could not be closed")
	}
	dir, err := g.writer.options.OpenDir(g.writer.options.Directory, g.inside()...)
	if err != nil {
		return err
	}
	locked, err := dir.TryLock(true)
	switch {
	case err != nil:
	case !locked: // it is being compacted
		err = &hourTakenError{g.hour.Add(time.Hour)}
	case !dir.Exists():
		err = fs.ErrNotExist
	default:
		if g.next, err = g.writer.nextFree(g.group, g.hour); err == nil && !g.next.IsZero() {
			err = &hourTakenError{g.next}
		}
	}
	if err == nil {
		g.file, err = createPartial(dir, g.path(), g.writer.stem(now), g.writer.options.Format, now, g.writer.memory)
		if err != nil {
			g.writer.recovered.Store(false) // an empty file may be left
		}
	}
	if err != nil {
		_ = dir.Close()                 // nothing was written through it
		g.writer.recovered.Store(false) // an empty file may be left
	}
	return err
}

// write writes a record and syncs it if it must be on the disk now.
func (g *groupWriter) write(encoded []byte, now time.Time) error {
	f := g.file
	err := f.write(encoded, now)
	// A new file would meet the same error. Others may concern this file only, for example a limit of the file size.
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
	if err == nil && g.writer.options.Sync == SyncRecord {
		// After a failed sync, the system may have dropped the data and a second sync would
		// succeed, so this file gets no more records. The earlier ones were synced.
		err = f.sync()
	}
	if err == nil {
		return nil
	}
	if f.truncate() == nil { // if it fails, openFile and recovery retry
		_ = f.syncContent() // if it fails, so does that of the next record
	}
	if !full || f.Records == 0 {
		g.close(ByError)
	}
	return err
}

// close makes unlock close the file.
func (g *groupWriter) close(reason Reason) {
	if f := g.file; f != nil {
		f.Reason = cmp.Or(f.Reason, reason)
		g.file, g.closing = nil, append(g.closing, f)
		g.writer.closing.Add(1)
	}
}

// unlock unlocks mu, and then closes files: no record of the group waits for that.
func (g *groupWriter) unlock() {
	closing := g.closing
	g.closing = nil
	g.mu.Unlock()
	for _, f := range closing {
		defer g.writer.closing.Done()
		defer g.finish(f) // also of the others, if one panics
	}
}

// finish closes a file, or abandons it.
func (g *groupWriter) finish(f *partialFile) {
	defer func() { f.index.Release() }()
	err := panics.Guarded(func() error {
		if err := f.reopen(g.writer.options.OpenDir); err != nil {
			return err
		}
		return f.finish(g.writer.joining(f))
	})()
	switch {
	case err == nil:
		f.release()
		if f.Records > 0 && g.writer.options.FileClosed != nil {
			g.writer.options.FileClosed(f.ClosedFile)
		}
	case errors.Is(err, ErrGone):
		if f.file != nil {
			_ = f.truncate() // a file that was moved still ends on a record
		}
		f.release()
		if !errors.Is(err, errRecovered) {
			g.fail("close", f, err)
		}
	default:
		g.writer.abandon(f)
		g.fail("close", f, err)
	}
}

// shutdown closes the file. There will be no other one.
func (g *groupWriter) shutdown() {
	g.mu.Lock()
	defer g.unlock()
	g.dropped = true
	g.close(ByShutdown)
}

// closeDue closes a file that is due.
func (g *groupWriter) closeDue(now time.Time) {
	g.mu.Lock()
	defer g.unlock()
	if f := g.file; f != nil {
		if reason := g.due(f, anyRecord, now); reason != "" {
			g.close(reason)
		}
	}
}

// tick syncs, and retries failed writes.
func (g *groupWriter) tick(now time.Time) {
	g.mu.Lock()
	defer g.unlock()
	f := g.file
	if f == nil {
		return
	}
	if f.torn && f.truncate() != nil {
		g.close(ByError)
		return
	}
	// Sync now if the record would be overdue at the next tick.
	due := g.writer.options.SyncInterval - g.writer.options.TickInterval()
	if g.writer.options.Sync != SyncInterval || f.unsyncedSince.IsZero() || now.Sub(f.unsyncedSince).Abs() < due {
		return
	}
	parked := f.file == nil
	err := f.reopen(g.writer.options.OpenDir)
	if errors.Is(err, errRecovered) { // which synced it
		g.close(ByError)
		return
	}
	if err == nil {
		err = f.sync()
	}
	if err != nil {
		g.fail("sync", f, err)
		g.close(ByError)
	} else if parked {
		f.park()
	}
}

// fail reports an error that no caller gets.
func (g *groupWriter) fail(op string, f *partialFile, err error) {
	g.writer.options.Failed(&fs.PathError{Op: op, Path: f.Path, Err: err})
}

// anyRecord is the least size of a record on disk. With it, due tells if a file is full.
const anyRecord = 1

// due returns why a file must be closed before size more bytes are written to it, or "".
func (g *groupWriter) due(f *partialFile, size int64, now time.Time) Reason {
	limits := &g.writer.options.Rotation
	switch {
	case !now.Before(g.hour.Add(time.Hour)):
		return ByHour
	case f.Records == 0:
		return ""
	case limits.MaxSize > 0 && f.Size+size > limits.MaxSize:
		return BySize
	case limits.MaxRecords > 0 && f.Records >= limits.MaxRecords:
		return ByRecords
	case limits.MaxAge > 0 && now.Sub(f.created).Abs() >= limits.MaxAge: // the clock may be set back
		return ByAge
	default:
		return ""
	}
}
