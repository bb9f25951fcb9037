// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// Error says that a partition could not be written. Its segment could.
type Error struct{ Err error }

func (e *Error) Error() string { return "write Parquet: " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Options of a Partition.
type Options struct {
	// Root is the directory of the store, and OpenDir opens those in it.
	Root    string
	OpenDir func(path string, inside ...string) (layout.Dir, error)
	// Group are the directories of the group, with slashes; Day is that of the partition; Stem names its files.
	Group string
	Day   time.Time
	Stem  string
	// MaxMemory bounds, in bytes, what both tables keep in memory.
	MaxMemory int64
}

// Partition writes the files of a partition, which have their names after Commit. Errors are an *Error.
type Partition struct {
	options   Options
	samples   *Samples
	processes *processRows
	files     [2]*file
}

// Of the memory of a partition, what the table of samples gets: that of processes has few rows.
const samplesShare = 0.75

// Create starts a partition.
func Create(options Options) (*Partition, error) {
	p := &Partition{options: options}
	for i, table := range []string{SamplesDir, ProcessesDir} {
		var err error
		if p.files[i], err = create(&options, table); err != nil {
			p.Abort()
			return nil, &Error{err}
		}
	}
	forSamples, shared := int64(samplesShare*float64(options.MaxMemory)), newCodec()
	p.samples = &Samples{table: newTable[Sample](p.files[0], SamplesDir, forSamples, shared)}
	p.processes = newProcesses(p.files[1], options.MaxMemory-forSamples, shared)
	return p, nil
}

// Add adds a valid payload without string references.
func (p *Partition) Add(pd pprofile.Profiles) error {
	return guarded(func() error {
		if err := p.samples.Add(pd); err != nil {
			return err
		}
		return p.processes.Add(pd)
	})
}

// guarded makes an error of a panic: what cannot be written as Parquet must not keep other partitions from being compacted.
func guarded(do func() error) error {
	if err := panics.Guarded(do)(); err != nil {
		return &Error{err}
	}
	return nil
}

// Commit gives the files their names, in place of those of an earlier attempt. They are on the disk then. A table without rows has no file.
func (p *Partition) Commit() (written Written, err error) {
	err = guarded(func() error {
		if err := errors.Join(p.samples.Close(), p.processes.Close()); err != nil {
			return err
		}
		for i, rows := range []int64{p.samples.count, p.processes.count} {
			if err := p.files[i].commit(rows > 0); err != nil {
				return err
			}
			if rows > 0 {
				written.Files++
				written.Bytes += p.files[i].size
			}
		}
		return nil
	})
	written.Samples, written.Processes = p.samples.count, p.processes.count
	return written, err
}

// Written is what a partition has: files, their size in bytes, and the rows of each table.
type Written struct {
	Files, Bytes, Samples, Processes int64
}

// Abort removes what is not committed.
func (p *Partition) Abort() {
	for _, f := range p.files {
		if f != nil {
			f.abort()
		}
	}
}

// file is one that is being written.
type file struct {
	dir    layout.Dir
	handle layout.Handle // nil after it was closed
	base   string
	size   int64
}

func create(o *Options, table string) (*file, error) {
	dir, err := o.OpenDir(o.Root, strings.Split(Dir(table, o.Group, o.Day), "/")...)
	if err != nil {
		return nil, err
	}
	f := &file{dir: dir, base: o.Stem + suffix}
	if err = f.remove(f.making()); err == nil { // of a process that was killed
		f.handle, err = dir.Create(f.making())
	}
	if err != nil {
		_ = dir.Close() // nothing was written through it
		return nil, &fs.PathError{Op: "create", Path: path.Join(o.Root, Dir(table, o.Group, o.Day), f.making()), Err: err}
	}
	return f, nil
}

// making is the name of the file until it is complete.
func (f *file) making() string { return "." + f.base + layout.MakingSuffix }

func (f *file) remove(name string) error {
	if err := f.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Write is for the tables.
func (f *file) Write(data []byte) (int, error) {
	if err := layout.WriteAt(f.handle, data, f.size); err != nil {
		return 0, err
	}
	f.size += int64(len(data))
	return len(data), nil
}

var _ io.Writer = (*file)(nil)

// commit gives the file its name, or removes it if it is not to be kept.
func (f *file) commit(keep bool) error {
	err := errors.Join(f.handle.Sync(), f.handle.Close())
	if f.handle = nil; err != nil {
		return err
	}
	if err := f.remove(f.base); err != nil {
		return err
	}
	if keep {
		err = f.dir.Rename(f.making(), f.base)
	} else {
		err = f.remove(f.making())
	}
	return errors.Join(err, f.dir.Sync())
}

// abort is called once.
func (f *file) abort() {
	if f.handle != nil {
		_ = f.handle.Close() // the file is removed
	}
	_ = f.remove(f.making()) // otherwise the next attempt does
	_ = f.dir.Close()        // what must be on the disk was synced
}
