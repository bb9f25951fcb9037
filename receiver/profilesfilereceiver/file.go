// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/profilesfilereceiver/internal/filewatch"
)

// progress is which records of a file need not be sent again, by number. It is stored after each record,
// so that it lists the few exceptions: records in progress, and those that cannot be read.
type progress struct {
	Last   int   `json:"last"`             // all up to this one
	Except []int `json:"except,omitempty"` // but these, sorted
}

func (p *progress) has(number int) bool {
	_, excepted := slices.BinarySearch(p.Except, number)
	return number <= p.Last && !excepted
}

func (p *progress) add(number int) {
	if place, excepted := slices.BinarySearch(p.Except, number); excepted {
		p.Except = slices.Delete(p.Except, place, place+1)
	}
	for ; p.Last < number; p.Last++ {
		if p.Last+1 < number {
			p.Except = append(p.Except, p.Last+1)
		}
	}
}

// openFile is a file that is read, or that has records in progress.
type openFile struct {
	*filewatch.File
	opened  *os.File       // holds the shared lock
	sending errgroup.Group // records in progress

	mu       sync.Mutex
	progress progress
	damages  int // parts that cannot be read
}

// read is the Handler of the Watcher. It reads a file and starts to send its records; the file ends when all were sent.
func (r *fileReceiver) read(ctx context.Context, file *filewatch.File) {
	f, err := r.open(file)
	if err != nil {
		r.end(file, "", err)
		return
	}
	err = r.guard(f, func() error { return r.sendRecords(ctx, f) })
	r.watcher.Go(func() {
		err := cmp.Or(f.sending.Wait(), err)
		defer func() { _ = f.opened.Close() }() // only now: retention would count it as not sent
		if errors.Is(err, errShutdown) {
			return
		}
		outcome := fileSuccess
		if f.damages > 0 {
			outcome = fileDamaged
		}
		if err == nil {
			err = r.guard(f, func() error { return r.afterRead(f) })
		}
		r.end(file, outcome, err)
	})
}

// guard calls a step of the work on a file. After a panic, the file is read again later.
func (r *fileReceiver) guard(f *openFile, step func() error) (err error) {
	defer ingest.Recover(r.logger, &err, zap.String("path", f.Path))
	return step()
}

// end counts how the work on a file ended, if it has an outcome, and tells the Watcher.
func (r *fileReceiver) end(file *filewatch.File, outcome string, err error) {
	switch {
	case err == nil, errors.Is(err, filewatch.ErrRemoved), errors.Is(err, filewatch.ErrChanged):
	case errors.Is(err, fs.ErrNotExist):
		r.reportMissing([]*filewatch.File{file})
		outcome, err = "", filewatch.ErrRemoved
	default:
		outcome, err = fileUnreadable, &filewatch.RetryError{Err: err}
	}
	if outcome != "" {
		r.telemetry.countFile(outcome)
	}
	r.watcher.Done(file, err)
}

// open opens and locks a file.
func (r *fileReceiver) open(file *filewatch.File) (*openFile, error) {
	opened, err := file.Open()
	if err != nil {
		return nil, err
	}
	locked, err := regularfile.TryLockShared(opened)
	switch {
	case err != nil:
	case !locked: // retention looks whether it may remove the file
		err = filewatch.ErrChanged
	default:
		err = file.Unchanged(opened)
	}
	if err != nil {
		_ = opened.Close()
		return nil, err
	}
	f := &openFile{File: file, opened: opened}
	if file.Stored == nil && r.mayGrow(f) { // what is read now would be read again
		_ = opened.Close()
		return nil, filewatch.ErrChanged
	}
	r.watcher.Progress(file, &f.progress)
	return f, nil
}

// errShutdown says that a record was not sent because the receiver stops.
var errShutdown = errors.New("the receiver stops")

// sendRecords starts to send the records of a file that were not sent before. After an error, the file is read again.
func (r *fileReceiver) sendRecords(ctx context.Context, f *openFile) error {
	if f.Size == 0 {
		r.damaged(f, errors.New("the file is empty, which the exporter never leaves; its records are lost"))
	}
	for record, err := range r.records(ctx, f) {
		if _, system := errors.AsType[syscall.Errno](err); system || errors.Is(err, errShutdown) {
			return err
		}
		if err != nil {
			r.damaged(f, err)
			continue
		}
		f.mu.Lock()
		complete := f.progress.has(record.Number)
		f.mu.Unlock()
		if complete {
			continue
		}
		size, err := r.sizeOf(record)
		if err != nil {
			r.damaged(f, fmt.Errorf("record %d: %w", record.Number, err))
			continue
		}
		if r.slots.Acquire(ctx, 1) != nil { // Shutdown: they are used no more
			return errShutdown
		}
		lease := r.inFlight.Lease(-1)
		if err := lease.Within(ctx, func() error { return lease.Take(size) }); err != nil {
			r.slots.Release(1)
			if ctx.Err() != nil {
				return errShutdown
			}
			r.damaged(f, fmt.Errorf("record %d: %w", record.Number, err))
			continue
		}
		own := *record
		own.Data = bytes.Clone(record.Data)
		f.sending.Go(func() error {
			defer r.slots.Release(1)
			defer lease.Release()
			return r.guard(f, func() error { return r.send(ctx, f, &own) })
		})
	}
	return nil
}

// maxLoggedDamages is how many damaged parts of a file are logged as errors: each line of another program's log is one.
const maxLoggedDamages = 10

// damaged notes a part of the file that cannot be read.
func (r *fileReceiver) damaged(f *openFile, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.damages++
	log, text := r.logger.Error, err.Error()
	if f.damages > maxLoggedDamages {
		log = r.logger.Debug
	}
	if place, ok := errors.AsType[*archive.Error](err); ok {
		text = place.InFile() // the path is a field
	}
	log("Skipped an unreadable part of the file", zap.String("path", f.Path), zap.String("error", text))
}

// complete notes that a record need not be sent again, and stores that.
func (r *fileReceiver) complete(f *openFile, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.add(number)
	r.position.set(f.Path, number)
	r.watcher.SaveProgress(f.File, f.progress)
}

// afterRead deletes or moves a file, or leaves it. The error is ErrRemoved if it did one of the former. A damaged
// file is never deleted. Nor is one that another program has replaced or added to: the error is
// ErrChanged, and the new content is read.
func (r *fileReceiver) afterRead(f *openFile) error {
	if r.config.AfterRead == afterReadKeep {
		return nil
	}
	switch err := f.CheckPath(); {
	case errors.Is(err, fs.ErrNotExist): // by its checkpoint, it is not read again under a new name
		return nil
	case err != nil:
		return err
	}
	switch {
	case f.damages > 0 && r.config.Rejected.Directory != "":
		to, err := r.move(f.File, filepath.Join(r.config.Rejected.Directory, damagedDir))
		if err != nil {
			return err
		}
		r.logger.Error("Moved damaged file", zap.String("path", f.Path), zap.String("to", to), zap.Int("damaged_places", f.damages))
	case r.config.AfterRead == afterReadDelete:
		if err := r.remove(f.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	default:
		if _, err := r.move(f.File, r.config.MoveTo); err != nil {
			return err
		}
	}
	return filewatch.ErrRemoved
}

// damagedDir has the damaged files, in the directory of rejected records. It is no part of the store that those are in.
const damagedDir = "damaged"

func (r *fileReceiver) remove(file *filewatch.File) error {
	if file.Stored != nil {
		return store.Remove(r.config.Watch.Directory, file.Stored)
	}
	return os.Remove(file.Path)
}

// move moves a file below a directory, never over another file.
func (r *fileReceiver) move(file *filewatch.File, directory string) (to string, err error) {
	path := filepath.Join(directory, file.Relative)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	to = path
	for n := 1; ; n++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
		to = fmt.Sprintf("%s.%d", path, n)
	}
	if file.Stored != nil {
		return to, store.Move(r.config.Watch.Directory, file.Stored, to)
	}
	return to, os.Rename(file.Path, to)
}
