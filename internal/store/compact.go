// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// CompactOptions of a Compactor. Functions must be quick.
type CompactOptions struct {
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
	// Compacted is called for each result.
	Compacted func(Result)
	// Skipped is called once for a file that is not compacted, such as one of which a sum is beyond int64. It stays as it is.
	Skipped func(path string, err error)
	// Damaged is called for a file of which some records could not be read. It was moved to the directory "damaged".
	Damaged func(path string)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens directories; nil is OpenDir of this package.
	OpenDir func(path string, inside ...string) (Dir, error)
}

// Result describes a compacted file.
type Result struct {
	Path            string // below the directory
	Inputs, Records int
	Before, After   int64 // bytes on disk
	Duration        time.Duration
}

// After errors no file is made for minBackoff, then twice as long each time up to maxBackoff.
const minBackoff, maxBackoff = time.Minute, 32 * time.Minute

// Compactor makes one file of those of an hour, and one of those of a day.
//
// The files have the sums of their Profiles for each slot of the clock, and a record for each service, or several in the order of
// time. A query over whole slots has the same result before and after: intervals are summed, and of snapshots the last of each slot
// stays. Timestamps and links are kept. A snapshot counts in the slot of its own time, whatever the timestamps of its samples.
//
// The rename that gives a result its name is the moment from which it counts, and its inputs do not, because its index names them.
type Compactor struct {
	options CompactOptions
	skipped map[string]int64 // sizes of the files that were skipped, by path

	backoff time.Duration
	retry   time.Time
}

// NewCompactor returns a Compactor.
func NewCompactor(options CompactOptions) *Compactor {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OpenDir == nil {
		options.OpenDir = OpenDir
	}
	return &Compactor{options: options, skipped: map[string]int64{}}
}

// Run makes all files that are due, and removes inputs of earlier ones. It does nothing while another process does. An error of one
// directory does not stop it; a later call tries again.
func (c *Compactor) Run(ctx context.Context) error {
	now := c.options.Now()
	if c.backoff > 0 && now.Before(c.retry) && c.retry.Sub(now) <= c.backoff { // the clock may be set back
		return nil
	}
	err := recovered(func() error { return c.run(ctx) })
	switch {
	case err == nil:
		c.backoff = 0
	case ctx.Err() == nil:
		c.backoff = min(max(2*c.backoff, minBackoff), maxBackoff)
		c.retry = now.Add(c.backoff)
	}
	return err
}

func (c *Compactor) run(ctx context.Context) error {
	directory, err := filepath.Abs(c.options.Directory)
	if err != nil {
		return err
	}
	c.options.Directory = directory
	root, err := c.options.OpenDir(directory)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // what must be on the disk was synced
	if locked, err := root.TryLock(false); err != nil || !locked {
		return err
	}
	id, err := directoryID(root)
	if err != nil {
		return err
	}
	p := &pass{Compactor: c, ctx: ctx, root: root, id: id}
	return p.tree(&branch{dir: root, root: directory})
}

// pass is one Run.
type pass struct {
	*Compactor
	ctx  context.Context
	root Dir
	id   string // of the directory
}

// tree compacts the days of all groups.
func (p *pass) tree(b *branch) error {
	if p.ctx.Err() != nil {
		return nil //nolint:nilerr // the next Run goes on
	}
	if len(b.date) < 2 {
		return b.children(p.tree)
	}
	return b.children(func(day *branch) error { return p.day(b, day) })
}

// isDue reports whether the partition of a directory may be compacted.
func (p *pass) isDue(b *branch, level Level) bool {
	return !p.options.Now().Before(b.time().Add(level.span()).Add(p.options.After))
}

// day compacts the hours of a day, and then the day.
func (p *pass) day(month, day *branch) error {
	done, err := p.cleanAll(month, day, Day)
	if err != nil {
		return err
	}
	err = day.children(func(hour *branch) error {
		if p.ctx.Err() != nil || !p.isDue(hour, Hour) {
			return nil //nolint:nilerr // the next Run goes on
		}
		return p.hour(day, hour, done)
	})
	if err == nil && !done && len(p.options.Resolutions) > 1 && p.isDue(day, Day) && p.ctx.Err() == nil {
		err = p.makeDay(month, day)
	}
	_ = p.root.Remove(day.path) // unless it is empty
	return err
}

// cleanAll removes the inputs of the files of a level that were made of what is in a directory, by anyone. done is set if this process or an
// earlier one made one.
func (p *pass) cleanAll(above, b *branch, level Level) (done bool, err error) {
	name := path.Base(b.path)
	files, err := above.files(func(f *File) bool {
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

func (p *pass) clean(f *File) error {
	moved, err := clean(p.root, p.options.OpenDir, p.options.Directory, f)
	for _, name := range moved {
		p.options.Damaged(name)
	}
	if errors.Is(err, errNoInputs) || errors.Is(err, fs.ErrPermission) {
		p.skip(f, err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove what %s was made of: %w", filepath.Join(p.options.Directory, f.Path), err)
	}
	return nil
}

// lock takes a partition alone, and closes the files that were left in it. busy is set if a process writes there.
func (p *pass) lock(b *branch) (busy bool, err error) {
	locked, err := b.dir.TryLock(false)
	if err != nil || !locked {
		return true, err
	}
	files, err := b.files(func(f *File) bool { return f.Partial })
	for i := range files {
		_, recoverErr := recoverFile(b, &files[i], files[i].Size, p.options.Now())
		if recoverErr != nil && !errors.Is(recoverErr, fs.ErrNotExist) {
			p.skip(&files[i], recoverErr) // it counts as it is
		}
	}
	return false, err
}

// hour compacts an hour, unless that was done, or its day was made.
func (p *pass) hour(day, hour *branch, done bool) error {
	busy, err := p.lock(hour)
	if err != nil || busy {
		return err
	}
	made, err := p.cleanAll(day, hour, Hour)
	if err == nil && !made && !done {
		var inputs []File
		if inputs, err = hour.files(p.isInput); err == nil {
			err = p.make(day, hour, Hour, inputs)
		}
	}
	_ = p.root.Remove(hour.path) // unless it is empty
	return err
}

func (p *pass) isInput(f *File) bool { return !f.Partial }

// makeDay compacts a day: its hours, and the files that were not there when their hour was made.
func (p *pass) makeDay(month, day *branch) error {
	var held []*branch
	defer func() {
		for _, hour := range held {
			_ = hour.dir.Close() // nothing was written through it
		}
	}()
	names, err := day.dir.Names()
	if err != nil {
		return day.fail("list", "", err)
	}
	inputs, err := day.files(nil)
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
		if !day.isChild(name) {
			continue
		}
		hour, err := day.child(name)
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
		late, err := hour.files(p.isInput)
		if err != nil {
			return err
		}
		inputs = append(inputs, late...)
	}
	if err := p.make(month, day, Day, inputs); err != nil {
		return err
	}
	for _, hour := range held {
		_ = p.root.Remove(hour.path) // unless it is empty
	}
	return nil
}

// inputsAreGone reports whether nothing is left of what a compacted file was made of. Otherwise it cannot be an input: what is left would
// count again.
func (p *pass) inputsAreGone(f *File) (bool, error) {
	_, err := p.root.Lstat(path.Join(f.dir(), path.Base(f.Path)[:2]))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	inputs, err := inputsOf(p.root, f)
	switch {
	case errors.Is(err, errNoInputs), errors.Is(err, fs.ErrPermission):
		p.skip(f, err)
		return false, nil
	case err != nil:
		return false, err
	}
	for _, input := range inputs {
		info, err := p.root.Lstat(path.Join(f.dir(), input.Name))
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
func (p *pass) skip(f *File, err error) {
	if size, known := p.skipped[f.Path]; known && size == f.Size {
		return
	}
	p.skipped[f.Path] = f.Size
	p.options.Skipped(f.Path, err)
}
