// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
)

// groupWriter writes the records of one group and content into the group's directory.
type groupWriter struct {
	options *Options
	group   []string
	path    string
	other   bool // it is that of the directory Other
	indexes *semaphore.Weighted
	// abandoned is set when an incomplete file was left.
	abandoned *atomic.Bool

	// These are guarded by Writer.mu.
	used bool // since Writer.directories were counted
	idle bool // not used since Writer.dropIdle was called

	mu     sync.Mutex
	names  names
	file   *partialFile // nil until the next record
	closed bool
}

// append writes a record. After an error, the record is removed at once or by a later call.
func (g *groupWriter) append(record Record, encoded [][]byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrClosed
	}
	now := g.options.Now()
	size := int64(0)
	for _, chunk := range encoded {
		size += int64(len(chunk))
	}
	if err := g.openFile(size, now); err != nil {
		return &fs.PathError{Op: "open file in", Path: g.path, Err: err}
	}
	f := g.file
	if err := g.write(encoded, now); err != nil {
		return &fs.PathError{Op: "write", Path: f.Path, Err: err}
	}
	at := f.Size
	f.add(record, size)
	f.torn = false // from here on the record is safe, whatever becomes of the index
	f.index.Add(at, size, record.Summaries, record.Labels)
	if reason := g.options.Rotation.due(f, anyRecord, now); reason != "" {
		g.tryClose(reason)
	}
	if g.options.RecordWritten != nil {
		g.options.RecordWritten(record, size, g.other)
	}
	return nil
}

// openFile makes g.file a file that a record of size bytes can be written to.
func (g *groupWriter) openFile(size int64, now time.Time) error {
	if err := g.checkPath(); err != nil {
		return err
	}
	if f := g.file; f != nil {
		reason := g.options.Rotation.due(f, size, now)
		if reason == "" {
			return f.truncate()
		}
		if err := g.closeFile(reason); err != nil {
			return err
		}
	}
	err := g.create(now)
	if errors.Is(err, fs.ErrNotExist) && g.file == nil {
		err = g.create(now) // another process removed the empty directory after it was opened
	}
	return err
}

// checkPath detects what other processes did to the directory and the file.
func (g *groupWriter) checkPath() error {
	if g.file == nil {
		return nil
	}
	err := g.resume()
	if err == nil {
		err = g.file.checkPath()
	}
	if errors.Is(err, ErrLocked) {
		// Another process looks into it, maybe to recover it. It stays for the next recovery.
		g.report(&fs.PathError{Op: "lock", Path: g.file.Path, Err: fmt.Errorf("file with %d records: %w; creating another file", g.file.Records, err)})
		g.abandon()
		return nil
	}
	if !errors.Is(err, ErrGone) {
		return err
	}
	g.report(&fs.PathError{Op: "find", Path: g.file.Path, Err: fmt.Errorf("file with %d records: %w; creating another file", g.file.Records, err)})
	if g.closeFile(ByError) != nil && g.file != nil { // it may be in a directory that was moved
		g.abandon()
	}
	return nil
}

// resume opens the file again if it is parked.
func (g *groupWriter) resume() error {
	if !g.file.parked() {
		return nil
	}
	dir, err := g.options.OpenDir(g.options.Directory, g.group...)
	if err != nil {
		return err
	}
	return g.file.resume(dir)
}

// park closes the descriptors of the file. It returns false if it keeps them, because the group is in use or for a later attempt to
// repair the file.
func (g *groupWriter) park() bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	return g.file == nil || g.file.park()
}

// abandon leaves an incomplete file for the next recovery.
func (g *groupWriter) abandon() {
	g.file.release()
	g.file = nil
	g.abandoned.Store(true)
}

// create opens the directory and creates a file in it. After an error, g.file may be a file
// that is removed later.
func (g *groupWriter) create(now time.Time) error {
	dir, err := g.options.OpenDir(g.options.Directory, g.group...)
	if err != nil {
		return err
	}
	g.file, err = createPartial(dir, g.path, &g.names, now, NewIndexBuilder(g.indexes))
	switch {
	case g.file == nil:
		_ = dir.Close() // nothing was created in it
	case err != nil:
		g.tryClose(ByError)
	}
	return err
}

// write writes a record and syncs it if it must be on the disk now.
func (g *groupWriter) write(encoded [][]byte, now time.Time) error {
	f := g.file
	err := f.write(encoded, now)
	// A new file would meet the same error. Others may concern this file only, for example a limit of the file size.
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
	if err == nil && g.options.Sync == SyncRecord {
		// After a failed sync, the system may have dropped the data and a second sync would
		// succeed, so this file gets no more records. The earlier ones were synced.
		err = f.sync()
	}
	if err == nil {
		return nil
	}
	_ = f.truncate() // if it fails, openFile and finalize retry
	if !full || f.Records == 0 {
		g.tryClose(ByError)
	}
	return err
}

// tryClose is closeFile, but reports the error, since another call will retry.
func (g *groupWriter) tryClose(reason Reason) { g.report(g.closeFile(reason)) }

// closeFile finalizes the file, if there is one. After an error the file gets no more records
// and a later call retries, unless the error is ErrGone.
func (g *groupWriter) closeFile(reason Reason) error {
	f := g.file
	if f == nil {
		return nil
	}
	f.Reason = cmp.Or(f.Reason, reason)
	err := g.resume()
	if err == nil {
		err = f.finalize(&g.names)
	}
	if err == nil && f.Records > 0 {
		f.IndexError = f.writeIndex()
	}
	if err == nil || errors.Is(err, ErrGone) {
		f.release()
		g.file = nil // the next append creates another one
	}
	if err != nil {
		return &fs.PathError{Op: "close", Path: f.Path, Err: err}
	}
	if f.Records > 0 && g.options.FileClosed != nil {
		g.options.FileClosed(f.ClosedFile)
	}
	return nil
}

// tick closes a file that is due, syncs, and retries failed writes.
func (g *groupWriter) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.file
	if f == nil {
		return
	}
	if f.parked() { // what is due needs descriptors for a moment only
		defer func() {
			if g.file == f {
				_ = f.park() // else the next tick repairs it
			}
		}()
	}
	now := g.options.Now()
	reason := g.options.Rotation.due(f, anyRecord, now)
	if reason == "" && f.truncate() != nil { // only a file with descriptors is torn
		reason = ByError
	}
	if reason != "" {
		g.tryClose(reason)
		return
	}
	// Sync now if the record would be overdue at the next tick.
	due := g.options.SyncInterval - g.options.TickInterval()
	if g.options.Sync == SyncInterval && !f.unsyncedSince.IsZero() && now.Sub(f.unsyncedSince) >= due {
		switch err := g.resume(); {
		case errors.Is(err, ErrGone):
			g.tryClose(ByError)
		case errors.Is(err, ErrLocked): // another process closes it
		case err != nil:
			g.report(&fs.PathError{Op: "open", Path: f.Path, Err: err}) // the next tick tries again
		default:
			if err := f.sync(); err != nil {
				g.report(&fs.PathError{Op: "sync", Path: f.Path, Err: err})
				g.tryClose(ByError)
			}
		}
	}
}

// close closes the file for good. If it cannot, the incomplete file stays for the next OpenWriter.
func (g *groupWriter) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	err := g.closeFile(ByShutdown)
	if g.file == nil {
		g.report(err)
		return nil
	}
	g.file.release()
	g.file = nil
	return err
}

// closeIdle closes a group without a file, unless it is in use.
func (g *groupWriter) closeIdle() bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	g.closed = g.file == nil
	return g.closed
}

func (g *groupWriter) report(err error) {
	if err != nil {
		g.options.Failed(err)
	}
}

// anyRecord is the least size of a record on disk. With it, due tells if a file is full.
const anyRecord = 1

// due returns why a file must be closed before size more bytes are written to it, or "".
func (r Rotation) due(f *partialFile, size int64, now time.Time) Reason {
	switch {
	case f.Reason != "": // it could not be closed before
		return f.Reason
	case f.Records == 0:
		return ""
	case r.MaxSize > 0 && f.Size+size > r.MaxSize:
		return BySize
	case r.MaxRecords > 0 && f.Records >= r.MaxRecords:
		return ByRecords
	case r.MaxAge > 0 && now.Sub(f.created) >= r.MaxAge:
		return ByAge
	default:
		return ""
	}
}
