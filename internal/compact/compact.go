// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package compact makes few files of many.
//
// The files of a directory that were created in one span of the clock become one. It has the sums of their Profiles for each
// slot of the clock, and a record for each service, so that a reader of one service reads little of it. A query over whole
// slots has the same result before and after: intervals are summed, and of snapshots the last of each slot stays. Timestamps
// and links are kept.
//
// The result replaces its inputs at once: it is written under a hidden directory, its manifest names the inputs, and a
// rename gives it its name. From then on readers leave out the inputs: see archive.WithoutReplaced. Inputs are removed a
// minute later, when no reader has a list without the result. After a crash, all inputs count, or the result does.
//
// An input that cannot be read completely stays as it is.
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
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
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
	// Keep reports whether the manifest of a file must stay although the inputs were removed; nil is never.
	Keep func(name string) bool
	// Compacted is called for each result.
	Compacted func(Result)
	// Skipped is called once for each input that cannot be read completely.
	Skipped func(path string, err error)

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
	// lockName and temporary are the lock file of all Compactors of a directory, and the subdirectory of what is being made.
	lockName, temporary = ".compact.lock", ".compacting"
)

// Compactor compacts the files of a directory.
type Compactor struct {
	options Options
	skipped map[string]bool // paths
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
	return &Compactor{options: options, skipped: map[string]bool{}}
}

// Run makes all files that are due, and removes inputs of earlier ones. It does nothing while another process does. An error of one
// directory does not stop it; the next call tries again.
func (c *Compactor) Run(ctx context.Context) (err error) {
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
		err = errors.Join(d.clean(), d.compact(ctx))
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

	names []string
	files []recordfile.Name // the closed ones that no other replaces
}

// list lists the directory, and removes the inputs of results that are old enough.
func (d *directory) list() (err error) {
	if d.names, err = d.dir.Names(); err != nil {
		return fmt.Errorf("list %s: %w", d.path, err)
	}
	replaced := map[string]bool{}
	for _, name := range d.names {
		of, isManifest := archive.ManifestOf(name)
		if !isManifest {
			continue
		}
		if !slices.Contains(d.names, of) { // it was not made, or was removed
			err = errors.Join(err, d.remove(name))
			continue
		}
		inputs, age, readErr := d.manifest(name)
		if readErr != nil {
			return fmt.Errorf("%s: %w", filepath.Join(d.path, name), readErr)
		}
		for _, input := range inputs {
			replaced[input] = true
		}
		if age >= grace {
			err = errors.Join(err, d.finish(of, name, inputs))
		}
	}
	for _, name := range d.names {
		if parsed, ours := recordfile.ParseName(name); ours && !parsed.Partial && !replaced[name] && !d.skipped[filepath.Join(d.path, name)] {
			d.files = append(d.files, parsed)
		}
	}
	slices.SortFunc(d.files, func(a, b recordfile.Name) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Sequence, b.Sequence))
	})
	return err
}

// manifest reads a manifest, and tells its age.
func (d *directory) manifest(name string) (inputs []string, age time.Duration, err error) {
	file, err := d.dir.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, 0, err
	}
	const maxManifest = 64 << 20
	content := make([]byte, min(info.Size(), maxManifest))
	if n, err := file.ReadAt(content, 0); n < len(content) {
		return nil, 0, err
	}
	return archive.ParseManifest(content), d.options.Now().Sub(info.ModTime()), nil
}

// finish removes the inputs of a result, and then its manifest. Readers may have locked some.
func (d *directory) finish(of, manifest string, inputs []string) (err error) {
	locked := false
	for _, input := range inputs {
		switch removeErr := recordfile.RemoveFile(d.dir, input); {
		case removeErr == nil, errors.Is(removeErr, fs.ErrNotExist):
		case errors.Is(removeErr, recordfile.ErrLocked):
			locked = true
		default:
			err = errors.Join(err, fmt.Errorf("remove %s: %w", filepath.Join(d.path, input), removeErr))
		}
	}
	if err == nil && !locked && !d.keeps(of) {
		err = d.remove(manifest)
	}
	return err
}

// keeps reports whether the manifest of a file must stay.
func (d *directory) keeps(name string) bool {
	return d.options.Keep(filepath.ToSlash(filepath.Join(append(slices.Clone(d.group), name)...)))
}

func (d *directory) remove(name string) error {
	if err := d.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", filepath.Join(d.path, name), err)
	}
	return nil
}

// clean removes what an earlier process did not finish.
func (d *directory) clean() error {
	if !slices.Contains(d.names, temporary) {
		return nil
	}
	inside, err := d.dir.OpenChild(temporary)
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
				unready[start] = unready[start] || f.Span > 0 && d.keeps(f.String()) // its manifest would be lost with it
			case f.Span < before:
				unready[start] = true // they become files of the level before first
			}
		}
		for _, start := range slices.SortedFunc(maps.Keys(buckets), time.Time.Compare) {
			if ctx.Err() != nil {
				return err
			}
			if !unready[start] {
				err = errors.Join(err, d.bucket(ctx, level, start, buckets[start]))
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
		err := m.make(ctx, start)
		bad, isInput := errors.AsType[*inputError](err)
		if !isInput {
			return errors.Join(err, d.cleanAgain())
		}
		path := filepath.Join(d.path, bad.name.String())
		d.skipped[path] = true
		d.options.Skipped(path, bad.err)
		inputs = slices.DeleteFunc(slices.Clone(inputs), func(n recordfile.Name) bool { return n == bad.name })
		if err := d.cleanAgain(); err != nil {
			return err
		}
	}
	return nil
}

// cleanAgain removes the temporary directory.
func (d *directory) cleanAgain() error {
	names, err := d.dir.Names()
	if err != nil {
		return err
	}
	d.names = names
	return d.clean()
}
