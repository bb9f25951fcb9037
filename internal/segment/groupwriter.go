// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"
)

// maxPending is how many files may wait to be closed after faults. Each has an open
// descriptor.
const maxPending = 16

// groupWriter writes the records of one group and content into the group's directory.
type groupWriter struct {
	options *Options
	group   []string
	path    string

	// Guarded by Writer.mu.
	users   int
	lastUse uint64

	mu      sync.Mutex
	dir     Dir // nil before the first record, and while the directory cannot be opened
	names   names
	current *partialFile   // nil until the next record
	pending []*partialFile // to be closed when the fault is gone
}

// append writes a record. After an error nothing of it is in the file.
func (g *groupWriter) append(record Record, e encoded) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.options.Now()
	if err := g.prepare(e.size(), now); err != nil {
		return &fs.PathError{Op: "open file in", Path: g.path, Err: err}
	}
	f := g.current
	if err := g.write(f, e, now); err != nil {
		return &fs.PathError{Op: "write", Path: f.Path, Err: err}
	}
	f.accept(record, e.size())
	if g.names.format.bare() {
		// The record is accepted when the file has its final name.
		g.current, f.Reason = nil, BySingleRecord
		if err := f.close(&g.names); err != nil {
			g.discard(f)
			return &fs.PathError{Op: "close", Path: f.Path, Err: err}
		}
		g.options.FileClosed(f.ClosedFile)
	} else if reason := g.options.Rotation.due(f, 1, now); reason != "" {
		g.retire(reason)
	}
	g.options.RecordWritten(int64(len(record.Data)), e.size())
	return nil
}

// prepare makes g.current a file that a record of size bytes can be written to.
func (g *groupWriter) prepare(size int64, now time.Time) error {
	if err := g.checkInPlace(); err != nil {
		return err
	}
	if f := g.current; f != nil {
		if reason := g.options.Rotation.due(f, size, now); reason != "" {
			g.retire(reason)
		} else if f.cut() != nil {
			g.retire(ByError)
		}
	}
	if g.current != nil {
		return nil
	}
	if len(g.pending) >= maxPending {
		if err := g.closePending(); len(g.pending) >= maxPending {
			return fmt.Errorf("%d files pending rename: %w", len(g.pending), err)
		}
	}
	f, err := createPartial(g.dir, g.path, &g.names, now)
	if f == nil && errors.Is(err, fs.ErrNotExist) {
		// Another process removed the empty directory after it was checked.
		if err = g.checkInPlace(); err == nil {
			f, err = createPartial(g.dir, g.path, &g.names, now)
		}
	}
	if err != nil {
		if f != nil {
			g.discard(f)
		}
		return err
	}
	g.current = f
	return nil
}

// checkInPlace detects what other processes did to the directory and the current file. It
// opens the directory if that is not open.
func (g *groupWriter) checkInPlace() error {
	if g.current != nil && g.current.inPlace() {
		return nil // the usual case, with one call
	}
	if g.dir != nil {
		current, err := g.dir.Current()
		if err != nil {
			return err
		}
		if !current {
			g.leaveDir()
		}
	}
	if g.dir == nil {
		dir, err := g.options.OpenDir(g.options.Directory, g.group...)
		if err != nil {
			return err
		}
		g.dir = dir
	}
	if g.current == nil {
		return nil
	}
	err := g.current.check()
	if errors.Is(err, ErrGone) {
		g.abandon(g.current)
		g.current = nil
		return nil
	}
	return err
}

// leaveDir closes the files in a directory that was removed or moved, if that is possible.
func (g *groupWriter) leaveDir() {
	g.options.Failed(&fs.PathError{Op: "find directory", Path: g.path, Err: fmt.Errorf("%w; recreating it", ErrGone)})
	if g.current != nil {
		g.retire(ByError)
	}
	_ = g.closePending()
	for _, f := range g.pending {
		g.abandon(f)
	}
	g.pending = nil
	_ = g.dir.Close()
	g.dir = nil
}

// write writes a record and syncs it if it must be on the disk now.
func (g *groupWriter) write(f *partialFile, e encoded, now time.Time) error {
	err := f.write(e, now)
	synced := true
	if err == nil && g.options.Sync == SyncRecord && !g.names.format.bare() {
		err = f.sync()
		synced = err == nil
	}
	if err == nil {
		return nil
	}
	_ = f.cut() // if it fails, prepare and close try again
	// After a failed sync, the system may have dropped the data and a second sync would
	// succeed, so this file gets no more records. The earlier ones were synced.
	// Other errors may concern this file only, for example a limit of the file size.
	if f.Records == 0 || !synced || !concernsAllFiles(err) {
		g.retire(ByError)
	}
	return err
}

// concernsAllFiles reports whether a new file would meet the same error.
func concernsAllFiles(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// discard removes a file, now or when the fault is gone.
func (g *groupWriter) discard(f *partialFile) {
	f.discard()
	g.pending = append(g.pending, f)
	g.report(g.closePending())
}

// retire closes the current file, now or when the fault is gone.
func (g *groupWriter) retire(reason Reason) { g.report(g.closeCurrent(reason)) }

func (g *groupWriter) closeCurrent(reason Reason) error {
	if f := g.current; f != nil {
		f.Reason = reason
		g.pending = append(g.pending, f)
		g.current = nil
	}
	return g.closePending()
}

// closePending tries to close all pending files. Those that it cannot close stay pending.
func (g *groupWriter) closePending() error {
	var errs []error
	g.pending = slices.DeleteFunc(g.pending, func(f *partialFile) bool {
		records := f.Records
		err := f.close(&g.names)
		switch {
		case errors.Is(err, ErrGone):
			g.abandon(f)
		case err != nil:
			errs = append(errs, &fs.PathError{Op: "close", Path: f.Path, Err: err})
			return false
		case records > 0:
			g.options.FileClosed(f.ClosedFile)
		}
		return true
	})
	return errors.Join(errs...)
}

// abandon closes the descriptor of a file that another process removed or changed.
func (g *groupWriter) abandon(f *partialFile) {
	if f.Records > 0 {
		g.options.Failed(&fs.PathError{Op: "find file", Path: f.Path, Err: fmt.Errorf("with %d records: %w", f.Records, ErrGone)})
	}
	_ = f.cut() // a file that was moved still ends on a record
	_ = f.file.Close()
}

// tick closes a file that is due, syncs, and retries what failed before.
func (g *groupWriter) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.report(g.closePending())
	f := g.current
	if f == nil {
		return
	}
	now := g.options.Now()
	if f.cut() != nil {
		g.retire(ByError)
		return
	}
	if reason := g.options.Rotation.due(f, 1, now); reason != "" {
		g.retire(reason)
		return
	}
	// The next tick may be as late as this one is early.
	due := g.options.SyncInterval - g.options.tickInterval()
	if g.options.Sync == SyncInterval && !f.unsynced.IsZero() && now.Sub(f.unsynced) >= due {
		if err := f.sync(); err != nil {
			g.report(&fs.PathError{Op: "sync", Path: f.Path, Err: err})
			g.retire(ByError)
		}
	}
}

// closeFiles closes all files. With an error some are still pending.
func (g *groupWriter) closeFiles(reason Reason) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closeCurrent(reason)
}

// idle reports whether no file is open.
func (g *groupWriter) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.current == nil && len(g.pending) == 0
}

// close closes all files and the directory. With an error, incomplete files stay for the
// next OpenWriter.
func (g *groupWriter) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.closeCurrent(ByShutdown)
	for _, f := range g.pending {
		_ = f.cut()
		_ = f.file.Close() // releases the lock
	}
	g.pending = nil
	if g.dir != nil {
		err = errors.Join(err, g.dir.Close())
	}
	return err
}

func (g *groupWriter) report(err error) {
	if err != nil {
		g.options.Failed(err)
	}
}
