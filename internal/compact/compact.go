// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact makes few files of many.
//
// The files of a directory that were created in one span of the clock become one. It has the sums of their Profiles for each
// slot of the clock, and a record for each service, or several in the order of time, so that a query of one service reads little of
// it. A query over whole slots has the same result before and after: intervals are summed, and of snapshots the last of each slot
// stays. Intervals are divided at the borders of slots. Timestamps and links are kept. A snapshot counts in the slot of its own time, whatever the timestamps of its samples.
//
// The result replaces its inputs at once: it is written in a hidden directory, its manifest names the inputs, and a
// rename gives it its name. From then on readers leave out the inputs: see recordfile.Replaced. Inputs are removed a
// minute later, when no reader has a list without the result. Until then the result is no input. The manifest stays as long as the
// result. After a crash, all inputs count, or the result does.
//
// An input that cannot be read completely, or with which a sum would be beyond int64, stays as it is. So do a result whose manifest is
// missing or damaged and the files of its time: some may be its inputs.
package compact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// Level says which files become one.
type Level struct {
	// Into is the span of time of a result. Those of the first level are made of files that no Compactor made, the others of
	// those of the level before.
	Into time.Duration
	// Resolution is the length of a slot.
	Resolution time.Duration
}

// Options of a Compactor. Functions must be quick.
type Options struct {
	Directory string
	// Levels is how many subdirectories, one inside the other, a group has.
	Levels int
	Format recordfile.Format
	// After is how long after the end of its span a file is made.
	After time.Duration
	// Into are the levels, in order: each is a multiple of the one before.
	Into []Level
	// MaxMemory limits the memory in bytes of reading and merging.
	MaxMemory int64
	// Keep reports whether a result must stay, such as until it was uploaded with its manifest; nil is never.
	Keep func(name string) bool
	// Compacted is called for each result.
	Compacted func(Result)
	// Skipped is called once for files that are never compacted, such as one that cannot be read completely.
	Skipped func(paths []string, err error)

	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// OpenDir opens directories; nil is recordfile.OpenDir.
	OpenDir func(path string, group ...string) (recordfile.Dir, error)
}

// Result describes a file that replaces others.
type Result struct {
	Path            string
	Inputs, Records int
	Before, After   int64 // bytes on disk, without indexes
	Duration        time.Duration
}

const (
	// grace is how long a reader may use a list of files.
	grace = time.Minute
	// After errors no file is made for minBackoff, then twice as long each time up to maxBackoff.
	minBackoff, maxBackoff = time.Minute, 32 * time.Minute
	// lockName and temporary are the lock file of all Compactors of a directory, and the subdirectory of what is being made.
	lockName, temporary = ".compact.lock", ".compacting"
)

// Compactor compacts the files of a directory.
type Compactor struct {
	options Options
	skipped map[string]bool // paths
	unclear map[string]bool // paths of results that were reported because of their manifests
	// replaced is when a result was made, found, or had its inputs removed, by path, while it has inputs. Times of files do not say
	// that: the clock may be set.
	replaced map[string]time.Time

	backoff time.Duration
	retry   time.Time
}

// New returns a Compactor.
func New(options Options) *Compactor {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.OpenDir == nil {
		options.OpenDir = recordfile.OpenDir
	}
	if options.Keep == nil {
		options.Keep = func(string) bool { return false }
	}
	return &Compactor{options: options, skipped: map[string]bool{}, unclear: map[string]bool{}, replaced: map[string]time.Time{}}
}

// Run makes all files that are due, and removes inputs of earlier ones. It does nothing while another process does. An error of one
// directory does not stop it; a later call tries again.
func (c *Compactor) Run(ctx context.Context) error {
	err := panics.Guarded(func() error { return c.run(ctx) })()
	switch {
	case err == nil && !c.waits():
		c.backoff = 0
	case err != nil && ctx.Err() == nil && !c.waits():
		c.backoff = min(max(2*c.backoff, minBackoff), maxBackoff)
		c.retry = c.options.Now().Add(c.backoff)
	}
	return err
}

// waits reports whether no file is to be made, after an error.
func (c *Compactor) waits() bool {
	return c.backoff > 0 && c.options.Now().Before(c.retry) && c.retry.Sub(c.options.Now()) <= c.backoff // the clock may be set back
}

func (c *Compactor) run(ctx context.Context) error {
	root, err := c.options.OpenDir(c.options.Directory)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // everything in it was synced
	lock, err := root.Create(lockName)
	if errors.Is(err, fs.ErrExist) {
		lock, err = root.Open(lockName)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(c.options.Directory, lockName), err)
	}
	defer func() { _ = lock.Close() }()
	if err := lock.Lock(); err != nil {
		if errors.Is(err, recordfile.ErrLocked) {
			return nil
		}
		return err
	}
	return c.directory(ctx, root, nil)
}

// directory compacts the files of one directory, and of those below it.
func (c *Compactor) directory(ctx context.Context, dir recordfile.Dir, group []string) error {
	d := &directory{Compactor: c, dir: dir, group: group, path: filepath.Join(append([]string{c.options.Directory}, group...)...)}
	err := d.list()
	if err == nil {
		err = d.clean()
	}
	if err == nil && !c.waits() {
		err = d.compact(ctx)
	}
	if len(group) == c.options.Levels {
		return err
	}
	for _, name := range d.names {
		if ctx.Err() != nil || !recordfile.IsGroupName(name) {
			continue
		}
		child, openErr := dir.OpenChild(name)
		if openErr != nil {
			if !errors.Is(openErr, recordfile.ErrNotDirectory) && !errors.Is(openErr, fs.ErrNotExist) {
				err = errors.Join(err, openErr)
			}
			continue
		}
		err = errors.Join(err, c.directory(ctx, child, append(slices.Clone(group), name)), child.Close())
	}
	return err
}

// directory is one that is being compacted.
type directory struct {
	*Compactor
	dir   recordfile.Dir
	group []string
	path  string

	names    []string
	files    []recordfile.Name   // the closed ones that no other replaces
	inputs   map[string][]string // those that are still there, by the path of their result
	sequence uint64              // the highest of a result
}

// list lists the directory, and removes the inputs of results that are old enough.
func (d *directory) list() (err error) {
	if d.names, err = d.dir.Names(); err != nil {
		return fmt.Errorf("list %s: %w", d.path, err)
	}
	paths := make([]string, 0, len(d.names))
	for _, name := range d.names {
		if of, isManifest := recordfile.ManifestOf(name); isManifest && !d.has(of) { // it was not made, or was removed
			err = errors.Join(err, d.remove(name))
		}
		paths = append(paths, filepath.Join(d.path, name))
	}
	replaced, failed := recordfile.Replaced(paths, recordfile.ReadManifest)
	d.inputs = map[string][]string{}
	for _, path := range paths {
		if by := replaced[path]; by != "" {
			d.inputs[by] = append(d.inputs[by], filepath.Base(path))
		}
	}
	unclear := d.report(failed)
	for i, name := range d.names {
		of, isIndex := strings.CutSuffix(name, recordfile.IndexSuffix)
		parsed, ours := recordfile.ParseName(of)
		path := paths[i]
		switch {
		case !ours || parsed.Partial:
			continue
		case !isIndex && replaced[path] == "" && !unclear[path] && !d.skipped[path]:
			d.files = append(d.files, parsed)
		case isIndex && parsed.Span > 0 && !d.has(of): // after a crash
			err = errors.Join(err, d.remove(name))
		}
		if parsed.Span > 0 {
			d.sequence = max(d.sequence, parsed.Sequence)
			err = errors.Join(err, d.finish(path))
		}
	}
	slices.SortFunc(d.files, func(a, b recordfile.Name) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Sequence, b.Sequence))
	})
	return err
}

// has reports whether the directory had a file when it was listed.
func (d *directory) has(name string) bool {
	_, found := slices.BinarySearch(d.names, name)
	return found
}

// report reports each result once whose inputs are not known, and returns it with the files that it may replace.
func (d *directory) report(failed []*recordfile.ManifestError) (unclear map[string]bool) {
	unclear = map[string]bool{}
	for _, err := range failed {
		paths := append([]string{err.File}, err.Inputs...)
		for _, path := range paths {
			unclear[path] = true
		}
		if !d.unclear[err.File] {
			d.unclear[err.File] = true
			d.options.Skipped(paths, err)
		}
	}
	return unclear
}

// finish removes the inputs of a result when it is old enough. Readers may have locked some.
func (d *directory) finish(path string) (err error) {
	now := d.options.Now()
	if len(d.inputs[path]) == 0 {
		delete(d.replaced, path)
		return nil
	}
	since, known := d.replaced[path]
	switch {
	case !known || now.Before(since):
		d.replaced[path] = now
		return nil
	case now.Sub(since) < grace:
		return nil
	}
	// The name of the result must not be lost before the next step.
	if err := d.dir.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", d.path, err)
	}
	for _, input := range d.inputs[path] {
		removeErr := recordfile.RemoveFile(d.dir, input)
		if removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) && !errors.Is(removeErr, recordfile.ErrLocked) {
			err = errors.Join(err, fmt.Errorf("remove %s: %w", filepath.Join(d.path, input), removeErr))
		}
	}
	d.replaced[path] = now
	return err
}

// keeps reports whether a result must stay.
func (d *directory) keeps(name string) bool {
	return d.options.Keep(filepath.ToSlash(filepath.Join(append(slices.Clone(d.group), name)...)))
}

func (d *directory) remove(name string) error {
	if err := d.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", filepath.Join(d.path, name), err)
	}
	return nil
}

// clean removes the temporary directory, which an earlier process may have left.
func (d *directory) clean() error {
	inside, err := d.dir.OpenChild(temporary)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := inside.Names()
	for _, name := range names {
		err = errors.Join(err, inside.Remove(name))
	}
	return errors.Join(err, inside.Close(), d.dir.Remove(temporary))
}

// compact makes the results that are due.
func (d *directory) compact(ctx context.Context) (err error) {
	before := time.Duration(0) // the span of the inputs
	for _, level := range d.options.Into {
		buckets, unready := map[time.Time][]recordfile.Name{}, map[time.Time]bool{}
		for _, f := range d.files {
			start := f.Time.Truncate(level.Into)
			switch {
			case d.options.Now().Before(start.Add(level.Into + d.options.After)):
			case f.Span == before:
				buckets[start] = append(buckets[start], f)
				// Without it, its inputs would count again, here or where its manifest is to be uploaded.
				unready[start] = unready[start] || f.Span > 0 && (len(d.inputs[filepath.Join(d.path, f.String())]) > 0 || d.keeps(f.String()))
			case f.Span < before:
				unready[start] = true // they become files of the level before first
			}
		}
		for _, start := range slices.SortedFunc(maps.Keys(buckets), time.Time.Compare) {
			if ctx.Err() != nil {
				return err
			}
			if !unready[start] { // what is beyond the limit is for the next run
				err = errors.Join(err, d.bucket(ctx, level, start, buckets[start][:min(len(buckets[start]), recordfile.MaxReplaced)]))
			}
		}
		before = level.Into
	}
	return err
}

// bucket makes the result of a bucket of those inputs that can be read.
func (d *directory) bucket(ctx context.Context, level Level, start time.Time, inputs []recordfile.Name) error {
	for len(inputs) > 0 {
		m := &maker{directory: d, level: level, inputs: inputs}
		err := panics.Guarded(func() error { return m.make(ctx, start) })() // other files are made nevertheless
		bad, isInput := errors.AsType[*inputError](err)
		if isInput {
			err = nil
		}
		if err = errors.Join(err, d.clean()); err != nil || !isInput {
			return err
		}
		inputs = slices.DeleteFunc(slices.Clone(inputs), func(n recordfile.Name) bool { return slices.Contains(bad.names, n) })
		if bad.err == nil {
			continue
		}
		paths := make([]string, len(bad.names))
		for i, name := range bad.names {
			paths[i] = filepath.Join(d.path, name.String())
			d.skipped[paths[i]] = true
		}
		d.options.Skipped(paths, bad.err)
	}
	return nil
}
