// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact makes few files of many: one of those of an hour, and one of those of a day.
package compact

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// Options of a Compactor. Functions must be quick.
type Options struct {
	Directory string
	// After is how long after the end of an hour or a day its files become one.
	After time.Duration
	// Resolutions are the lengths of the slots in which Profiles are merged, of hours and of days. Without the second, days
	// are not made.
	Resolutions []time.Duration
	// MaxMemory limits the memory in bytes of reading and merging.
	MaxMemory int64
	// Ready reports whether the file of an hour may become part of the file of its day, by its path below the directory: not before
	// it is in the bucket, and what it was made of is not. nil is always.
	Ready func(path string) bool
	// Parquet also writes what becomes part of an hour, or is too late for that, as Parquet: see package lake. nil does not.
	Parquet *Parquet
	// Compacted is called for each result.
	Compacted func(Result)
	// Skipped is called once for a file that is not compacted, such as one of which a sum is beyond int64. It stays as it is.
	Skipped func(path string, err error)
	// Damaged is called for a file of which some records could not be read. It was moved to the directory "damaged".
	Damaged func(path string)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens directories; nil is layout.OpenDir.
	OpenDir func(path string, inside ...string) (layout.Dir, error)
}

// Parquet says what becomes of Parquet files. Functions must be quick.
type Parquet struct {
	// Retention applies to the files in the directory.
	Retention lake.Retention
	// Written is called with what was written of a partition, by the path of its directory.
	Written func(partition string, written lake.Written)
	// LeftOut is called for a partition that is compacted without Parquet, as that has failed for patience.
	LeftOut func(partition string, err error)
	// Removed is called for each file that Retention removed.
	Removed func(path string, size int64)
}

// patience is how long a partition is not compacted because of errors of its Parquet files, after it could have been.
const patience = 24 * time.Hour

// expireInterval is how often Parquet.Retention applies.
const expireInterval = 10 * time.Minute

// Result describes a compacted file.
type Result struct {
	Path            string // below the directory
	Inputs, Records int
	Before, After   int64 // bytes on disk
	Duration        time.Duration
}

// After an error, a directory is left alone for minBackoff, then twice as long each time up to maxBackoff.
const minBackoff, maxBackoff = time.Minute, 32 * time.Minute

// delay is how long a directory is left alone after an error.
type delay struct {
	length time.Duration
	until  time.Time
}

func (d delay) holds(now time.Time) bool {
	left := d.until.Sub(now)
	return left > 0 && left <= d.length // the clock may be set back
}

// Compactor makes one file of those of an hour, and one of those of a day.
//
// The files have the sums of their Profiles for each slot of the clock, and a record for each service, or several in the order of
// time. A query over whole slots has the same result before and after: intervals are summed, and of snapshots the last of each slot
// stays. Timestamps and links are kept. A snapshot counts in the slot of its own time, whatever the timestamps of its samples.
//
// The rename that gives a result its name is the moment from which it counts, and its inputs do not, because its index names them.
type Compactor struct {
	options Options
	skipped map[string]int64 // sizes of the files that were skipped, by path

	delays  map[string]delay // by path below the store's directory, which is ""
	expired time.Time        // when Parquet.Retention applied last
}

// New returns a Compactor.
func New(options Options) *Compactor {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OpenDir == nil {
		options.OpenDir = layout.OpenDir
	}
	return &Compactor{options: options, skipped: map[string]int64{}, delays: map[string]delay{}}
}

// Run makes all files that are due, and removes inputs of earlier ones. It does nothing while another process does. An error of one
// directory, or a panic, does not stop the others; a later call tries again.
func (c *Compactor) Run(ctx context.Context) error {
	now := c.options.Now()
	maps.DeleteFunc(c.delays, func(_ string, d delay) bool { // of a directory that is gone, at the latest
		return now.Sub(d.until).Abs() > maxBackoff
	})
	p := &pass{Compactor: c, ctx: ctx}
	p.attempt("", p.run)
	return errors.Join(p.failures...)
}

// pass is one Run.
type pass struct {
	*Compactor
	ctx      context.Context
	root     layout.Dir
	id       string // of the directory
	failures []error
}

// attempt does the work on a directory, unless that is left alone after an error. It reports whether the work was done.
func (p *pass) attempt(directory string, do func() error) bool {
	now, d := p.options.Now(), p.delays[directory]
	if d.holds(now) {
		return false
	}
	err := panics.Guarded(do)()
	if err == nil {
		delete(p.delays, directory)
		return true
	}
	p.failures = append(p.failures, err)
	if p.ctx.Err() == nil {
		length := min(max(2*d.length, minBackoff), maxBackoff)
		p.delays[directory] = delay{length, now.Add(length)}
	}
	return false
}

// children attempts the work on each directory of the tree in another one. complete is set if all of it was done.
func (p *pass) children(b *layout.Branch, do func(*layout.Branch) error) (complete bool, err error) {
	names, err := b.Names()
	complete = err == nil
	for _, name := range names {
		if p.ctx.Err() != nil {
			return false, nil //nolint:nilerr // the next Run goes on
		}
		done := p.attempt(path.Join(b.Path, name), func() error { return b.Visit(name, do) })
		complete = complete && done
	}
	return complete, err
}

func (p *pass) run() error {
	directory, err := filepath.Abs(p.options.Directory)
	if err != nil {
		return err
	}
	p.options.Directory = directory
	if p.root, err = p.options.OpenDir(directory); err != nil {
		return err
	}
	defer func() { _ = p.root.Close() }() // what must be on the disk was synced
	if locked, err := p.root.TryLock(false); err != nil || !locked {
		return err
	}
	if p.id, err = layout.DirectoryID(p.root); err != nil {
		return err
	}
	err = p.tree(&layout.Branch{Dir: p.root, Root: directory})
	p.attempt(lake.SamplesDir, p.expireParquet)
	return err
}

// tree compacts the days of all groups.
func (p *pass) tree(b *layout.Branch) error {
	do := p.tree
	if len(b.Date) == 2 {
		do = func(day *layout.Branch) error { return p.day(b, day) }
	}
	_, err := p.children(b, do)
	return err
}

// isDue reports whether the partition of a directory may be compacted.
func (p *pass) isDue(b *layout.Branch, level layout.Level) bool {
	return !p.options.Now().Before(b.Time().Add(level.Span()).Add(p.options.After))
}

// day compacts the hours of a day, and then the day.
func (p *pass) day(month, day *layout.Branch) error {
	done, err := p.cleanAll(month, day, layout.Day)
	if err != nil {
		return err
	}
	complete, err := p.children(day, func(hour *layout.Branch) error {
		if !p.isDue(hour, layout.Hour) {
			return nil
		}
		return p.hour(day, hour, done)
	})
	if complete && !done && len(p.options.Resolutions) > 1 && p.isDue(day, layout.Day) && p.ctx.Err() == nil {
		err = p.makeDay(month, day)
	}
	_ = p.root.Remove(day.Path) // unless it is empty
	return err
}

// cleanAll removes the inputs of the files of a level that were made of what is in a directory, by anyone. done is set if this process or an
// earlier one made one.
func (p *pass) cleanAll(above, b *layout.Branch, level layout.Level) (done bool, err error) {
	name := path.Base(b.Path)
	making := name + "_" + p.id + layout.MakingSuffix
	if err := above.Dir.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a process that was killed
		return false, above.Fail("remove", making, err)
	}
	files, err := above.Files(func(f *layout.File) bool {
		return f.Level == level && strings.HasPrefix(path.Base(f.Path), name+"_")
	})
	if err != nil {
		return false, err
	}
	for i := range files {
		done = done || strings.HasSuffix(files[i].Stem, "_"+p.id)
		if err := p.clean(&files[i]); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (p *pass) clean(f *layout.File) error {
	moved, err := clean(p.root, p.options.OpenDir, p.options.Directory, f)
	for _, name := range moved {
		p.options.Damaged(name)
	}
	if errors.Is(err, store.ErrNoInputs) || errors.Is(err, fs.ErrPermission) {
		p.skip(f, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove what %s was made of: %w", filepath.Join(p.options.Directory, f.Path), err)
	}
	return nil
}

// lock takes a partition alone, and closes the files that were left in it. busy is set if a process writes there.
func (p *pass) lock(b *layout.Branch) (busy bool, err error) {
	locked, err := b.Dir.TryLock(false)
	if err != nil || !locked {
		return true, err
	}
	files, err := b.Files(func(f *layout.File) bool { return f.Partial })
	for i := range files {
		_, recoverErr := store.RecoverFile(b, &files[i], files[i].Size, p.options.Now())
		if recoverErr != nil && !errors.Is(recoverErr, fs.ErrNotExist) {
			p.skip(&files[i], recoverErr) // it counts as it is
		}
	}
	return false, err
}

// hour compacts an hour, unless that was done, or its day was made.
func (p *pass) hour(day, hour *layout.Branch, done bool) error {
	busy, err := p.lock(hour)
	if err != nil || busy {
		return err
	}
	made, err := p.cleanAll(day, hour, layout.Hour)
	if err == nil && !made && !done {
		var inputs []layout.File
		if inputs, err = hour.Files(p.isInput); err == nil {
			err = p.make(day, hour, layout.Hour, inputs)
		}
	}
	_ = p.root.Remove(hour.Path) // unless it is empty
	return err
}

func (p *pass) isInput(f *layout.File) bool { return !f.Partial }

// makeDay compacts a day: its hours, and the files that were not there when their hour was made.
func (p *pass) makeDay(month, day *layout.Branch) error {
	var held []*layout.Branch
	defer func() {
		for _, hour := range held {
			_ = hour.Dir.Close() // nothing was written through it
		}
	}()
	names, err := day.Names()
	if err != nil {
		return err
	}
	inputs, err := day.Files(nil)
	if err != nil {
		return err
	}
	for i := range inputs {
		if p.options.Ready != nil && !p.options.Ready(inputs[i].Path) {
			return nil
		}
		if gone, err := p.inputsAreGone(&inputs[i]); err != nil || !gone {
			return err
		}
	}
	for _, name := range names {
		hour, err := day.Child(name)
		if err != nil {
			return err
		}
		if hour == nil {
			continue
		}
		held = append(held, hour)
		busy, err := p.lock(hour)
		if err != nil || busy {
			return err
		}
		late, err := hour.Files(p.isInput)
		if err != nil {
			return err
		}
		inputs = append(inputs, late...)
	}
	if err := p.writeLate(month, day, inputs); err != nil {
		return err
	}
	if err := p.make(month, day, layout.Day, inputs); err != nil {
		return err
	}
	for _, hour := range held {
		_ = p.root.Remove(hour.Path) // unless it is empty
	}
	return nil
}

// inputsAreGone reports whether nothing is left of what a compacted file was made of. Otherwise it cannot be an input: what is left would
// count again.
func (p *pass) inputsAreGone(f *layout.File) (bool, error) {
	_, err := p.root.Lstat(path.Join(f.Dir(), path.Base(f.Path)[:2]))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	inputs, err := store.InputsOf(p.root, f)
	switch {
	case errors.Is(err, store.ErrNoInputs), errors.Is(err, fs.ErrPermission):
		p.skip(f, err)
		return false, nil
	case err != nil:
		return false, err
	}
	for _, input := range inputs {
		info, err := p.root.Lstat(path.Join(f.Dir(), input.Name))
		if err == nil && info.Size() == input.Size {
			return false, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// skip reports a file once.
func (p *pass) skip(f *layout.File, err error) {
	if size, known := p.skipped[f.Path]; known && size == f.Size {
		return
	}
	p.skipped[f.Path] = f.Size
	p.options.Skipped(f.Path, err)
}
