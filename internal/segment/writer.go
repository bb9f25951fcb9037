// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Sync says when records are put on the disk, beyond what the operating system
// does by itself. A file is always synced before it gets its finished name.
type Sync int

const (
	// SyncNone leaves it to the operating system.
	SyncNone Sync = iota
	// SyncInterval syncs at most Options.SyncInterval after a record was written.
	SyncInterval
	// SyncRecord syncs the file, and the directory where needed, before Append returns.
	SyncRecord
)

// maxUnfinished is how many files may wait to be finished after faults. Each
// holds a descriptor. With more, Append refuses records.
const maxUnfinished = 16

// maxTick is the longest time between calls of Tick, however long its intervals.
const maxTick = time.Second

// Options of a Writer.
type Options struct {
	Format   Format
	Rotation Rotation
	Sync     Sync
	// SyncInterval is for Sync SyncInterval only, and positive then.
	SyncInterval time.Duration

	// Appended, if set, is called for each record that was accepted, with its size in
	// bytes as it was given and as it is in the file. It must be quick.
	Appended func(raw, stored int64)
	// Finished, if set, is called for each file that got its finished name. It must
	// be quick and must not call the Writer.
	Finished func(Finished)
	// Repaired, if set, is called for each leftover file that OpenWriter repaired.
	Repaired func(Repaired)
	// Trouble, if set, is called for faults that no caller of Append is told of:
	// they do not concern its record. It must be quick and must not call the Writer.
	Trouble func(error)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens the directory, when the Writer is opened and when it was found
	// removed; nil is OpenDir of this package.
	OpenDir func(path string, group ...string) (Dir, error)
}

// withDefaults gives the options with what is left out, or the error that names
// what no Writer can work with.
func (o Options) withDefaults() (Options, error) {
	if err := o.Format.validate(); err != nil {
		return o, fmt.Errorf("segment: %w", err)
	}
	if o.Sync == SyncInterval && o.SyncInterval <= 0 {
		return o, fmt.Errorf("segment: sync interval is %v: want more than 0", o.SyncInterval)
	}
	o.Format.Framing = o.Format.framing()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OpenDir == nil {
		o.OpenDir = OpenDir
	}
	return o, nil
}

// tickInterval is how often what is due must be looked for.
func (o Options) tickInterval() time.Duration {
	interval := maxTick
	if o.Rotation.MaxAge > 0 {
		interval = min(interval, o.Rotation.MaxAge)
	}
	if o.Sync == SyncInterval {
		interval = min(interval, o.SyncInterval)
	}
	return max(interval, time.Millisecond)
}

func (o Options) trouble(err error) {
	if o.Trouble != nil {
		o.Trouble(err)
	}
}

// Finished tells of a file that is complete.
type Finished struct {
	// Name in the directory.
	Name string
	// Group is the path of the file's directory below that of a Set.
	Group   string
	Reason  Reason
	Records int
	Count   Count
	// Size on the disk in bytes; Raw is the bytes of the records themselves.
	Size, Raw int64
}

// Writer writes records into the files of one directory. It is safe for
// concurrent use; records are encoded concurrently and written one by one.
type Writer struct {
	options Options
	base    string
	group   []string // names of directories below base
	path    string   // of base and group

	mu         sync.Mutex
	closed     bool
	dir        Dir // nil if it was lost and could not be opened again yet
	names      names
	current    *partial   // nil until the next record
	unfinished []*partial // to be finished, or discarded, when the fault is gone
}

// OpenWriter opens the directory at path, which it makes if it is missing, and
// repairs what an earlier process left there. No file is made before the first
// record. The error names the option or the path; nothing is left open then.
//
// The owner calls Tick at least every TickInterval, and Close at the end.
func OpenWriter(path string, options Options) (*Writer, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	w, err := openWriter(path, nil, options)
	if err != nil {
		return nil, err
	}
	if _, err := repairDir(w.dir, path, options); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// openWriter opens the directory of the group and repairs nothing.
func openWriter(path string, group []string, options Options) (*Writer, error) {
	dir, err := options.OpenDir(path, group...)
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	return &Writer{
		options: options, base: path, group: group, path: filepath.Join(append([]string{path}, group...)...),
		names: names{format: options.Format}, dir: dir,
	}, nil
}

// TickInterval is how often Tick is to be called.
func (w *Writer) TickInterval() time.Duration { return w.options.tickInterval() }

// Append writes one record, which it does not keep, and returns when the record
// is as safe as Options.Sync says. count is added to what is told of the file.
//
// With an error the record is not in the file. An InvalidRecordError is final;
// any other comes from the file system, and trying again later is right, but after
// ErrNotDirectory.
func (w *Writer) Append(record []byte, count Count) error {
	if err := w.options.Format.Content.checkRecord(record); err != nil {
		return &InvalidRecordError{Reason: err}
	}
	e, err := encode(w.options.Format, record)
	defer e.release()
	if err != nil {
		return fmt.Errorf("segment: compress record of %d bytes: %w", len(record), err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	now := w.options.Now()
	if err := w.prepare(e.size(), now); err != nil {
		return fmt.Errorf("segment: directory %s: %w", w.path, err)
	}
	p := w.current
	if err := w.write(p, e, now); err != nil {
		return fmt.Errorf("segment: write record of %d bytes to %s in %s: %w", len(record), p.name, w.path, err)
	}
	p.accept(e, len(record), count)
	if w.options.Format.Framing == Bare {
		if err := w.appendedBare(p); err != nil {
			return err
		}
		w.tellAppended(record, e)
		return nil
	}
	w.tellAppended(record, e)
	if reason, full := w.options.Rotation.after(p.usage(now)); full {
		w.retire(reason)
	}
	return nil
}

// prepare makes w.current a file that a record of size bytes can go into.
func (w *Writer) prepare(size int64, now time.Time) error {
	if err := w.follow(); err != nil {
		return err
	}
	if p := w.current; p != nil {
		if reason, full := w.options.Rotation.before(p.usage(now), size); full {
			w.retire(reason)
		} else if p.cut() != nil {
			w.retire(ByFault)
		}
	}
	if w.current != nil {
		return nil
	}
	if len(w.unfinished) >= maxUnfinished {
		if err := w.finishRest(); err != nil && len(w.unfinished) >= maxUnfinished {
			return fmt.Errorf("%d files wait to be finished: %w", len(w.unfinished), err)
		}
	}
	p, err := createPartial(w.dir, &w.names, now)
	if p == nil && errors.Is(err, fs.ErrNotExist) {
		// Someone removed the empty directory in this moment.
		if err = w.follow(); err == nil {
			p, err = createPartial(w.dir, &w.names, now)
		}
	}
	if err != nil {
		if p != nil {
			w.drop(p)
		}
		return err
	}
	w.current = p
	return nil
}

// follow notices what others did to the directory and to the current file.
func (w *Writer) follow() error {
	if w.current != nil && w.current.found() {
		return nil // one call says all
	}
	if w.dir != nil {
		switch current, err := w.dir.Current(); {
		case err != nil:
			return err
		case !current:
			w.leaveDir()
		}
	}
	if w.dir == nil {
		dir, err := w.options.OpenDir(w.base, w.group...)
		if err != nil {
			return err
		}
		w.dir = dir
	}
	if w.current == nil {
		return nil
	}
	err := w.current.checkThere()
	if errors.Is(err, ErrGone) {
		w.lose(w.current)
		w.current = nil
		return nil
	}
	return err
}

// leaveDir gives up a directory that was removed or moved. What is in it is
// finished if that is possible.
func (w *Writer) leaveDir() {
	w.trouble(fmt.Errorf("segment: directory %s, which is made anew: %w", w.path, ErrGone))
	w.retire(ByFault)
	_ = w.finishRest()
	for _, p := range w.unfinished {
		w.lose(p)
	}
	w.unfinished = nil
	_ = w.dir.Close() // it is of no use any more
	w.dir = nil
}

// write writes and, if asked for, syncs. After an error nothing of the record stays.
func (w *Writer) write(p *partial, e encoded, now time.Time) error {
	err := p.write(e, now)
	synced := true
	if err == nil && w.options.Sync == SyncRecord && w.options.Format.Framing != Bare {
		err = p.sync()
		synced = err == nil
	}
	if err == nil {
		return nil
	}
	_ = p.cut() // if it fails, prepare and finish try again
	// After a failed sync the system may have forgotten what it could not write,
	// and a second sync would succeed: do not rely on this file any more. Earlier
	// records in it were synced before.
	// Where only this file takes no more, such as at the size that files may have, the
	// next one does.
	if p.records == 0 || !synced || !meetsAll(err) {
		w.retire(ByFault)
	}
	return err
}

// meetsAll says whether a new file would fail to be written, too.
func meetsAll(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

// appendedBare finishes the file that is one record: only then is it accepted.
func (w *Writer) appendedBare(p *partial) error {
	w.current = nil
	p.reason = ByFraming
	err := p.finish(&w.names)
	if err == nil {
		w.tellFinished(p)
		return nil
	}
	err = fmt.Errorf("segment: finish %s in %s: %w", p.name, w.path, err)
	w.drop(p)
	return err
}

// drop takes a whole file back, now or later.
func (w *Writer) drop(p *partial) {
	p.discard()
	w.unfinished = append(w.unfinished, p)
	if err := w.finish(p); err != nil {
		w.trouble(err)
	}
}

// retire finishes the current file, now or later.
func (w *Writer) retire(reason Reason) {
	p := w.current
	if p == nil {
		return
	}
	w.current = nil
	p.reason = reason
	w.unfinished = append(w.unfinished, p)
	if err := w.finish(p); err != nil {
		w.trouble(err)
	}
}

// finish finishes one of the unfinished files, and forgets it unless it is to be
// tried again.
func (w *Writer) finish(p *partial) error {
	records := p.records
	err := p.finish(&w.names)
	switch {
	case err == nil:
		if records > 0 {
			w.tellFinished(p)
		}
	case errors.Is(err, ErrGone):
		w.lose(p)
		err = nil
	default:
		return fmt.Errorf("segment: finish %s in %s: %w", p.name, w.path, err)
	}
	for i := range w.unfinished {
		if w.unfinished[i] == p {
			w.unfinished = append(w.unfinished[:i], w.unfinished[i+1:]...)
			break
		}
	}
	return err
}

// finishRest tries to finish all files that wait for it.
func (w *Writer) finishRest() error {
	var errs []error
	for _, p := range append([]*partial(nil), w.unfinished...) {
		errs = append(errs, w.finish(p))
	}
	return errors.Join(errs...)
}

// lose gives up a file that someone else has removed or changed.
func (w *Writer) lose(p *partial) {
	if p.records > 0 {
		w.trouble(fmt.Errorf("segment: %s in %s, with %d records: %w", p.name, w.path, p.records, ErrGone))
	}
	_ = p.cut()        // if it was moved it still ends on a record
	_ = p.file.Close() // nothing more can be done for it
}

// Tick does what is due: it finishes a file that is old enough, syncs, and tries
// again to finish what could not be finished before. Faults go to
// Options.Trouble, and are tried again at the next Tick.
func (w *Writer) Tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	if err := w.finishRest(); err != nil {
		w.trouble(err)
	}
	p := w.current
	if p == nil {
		return
	}
	now := w.options.Now()
	if p.cut() != nil {
		w.retire(ByFault)
		return
	}
	if reason, full := w.options.Rotation.after(p.usage(now)); full {
		w.retire(reason)
		return
	}
	// The next Tick may come late by as much as this one came early.
	due := w.options.SyncInterval - w.TickInterval()
	if w.options.Sync == SyncInterval && !p.unsynced.IsZero() && now.Sub(p.unsynced) >= due {
		if err := p.sync(); err != nil {
			w.trouble(fmt.Errorf("segment: sync %s in %s: %w", p.name, w.path, err))
			w.retire(ByFault)
		}
	}
}

// finishAll finishes what is open, so that the Writer holds no file. It can go on.
func (w *Writer) finishAll(reason Reason) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.give(reason)
	return w.finishRest()
}

// give puts the current file to those that wait to be finished.
func (w *Writer) give(reason Reason) {
	if w.current != nil {
		w.current.reason = reason
		w.unfinished = append(w.unfinished, w.current)
		w.current = nil
	}
}

// idle says whether the Writer holds no file.
func (w *Writer) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current == nil && len(w.unfinished) == 0
}

// Close finishes the current file and ends the Writer. With an error, a file may
// be left with its partial name, for the next OpenWriter to finish. Calling Close
// again does nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	w.give(ByClose)
	err := w.finishRest()
	for _, p := range w.unfinished {
		_ = p.cut()
		_ = p.file.Close() // its lock goes, so that it can be repaired
	}
	w.unfinished = nil
	if w.dir != nil {
		err = errors.Join(err, w.dir.Close())
	}
	return err
}

func (w *Writer) tellAppended(record []byte, e encoded) {
	if w.options.Appended != nil {
		w.options.Appended(int64(len(record)), e.size())
	}
}

func (w *Writer) tellFinished(p *partial) {
	if w.options.Finished != nil {
		finished := p.finished()
		finished.Group = filepath.Join(w.group...)
		w.options.Finished(finished)
	}
}

func (w *Writer) trouble(err error) { w.options.trouble(err) }
