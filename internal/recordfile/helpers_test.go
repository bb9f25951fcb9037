// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(killDir) != "" {
		writeUntilKilled()
	}
	goleak.VerifyTestMain(m)
}

// openWriter is OpenWriter for tests, which leave out most options.
func openWriter(dir string, options Options) (*Writer, error) {
	options.Directory = dir
	options.MaxOpen = max(options.MaxOpen, 1)
	if options.Failed == nil {
		options.Failed = func(error) {}
	}
	return OpenWriter(options)
}

func openTestWriter(t testing.TB, dir string, options Options) *Writer {
	if options.Failed == nil {
		options.Failed = func(err error) { t.Errorf("unexpected error: %v", err) }
	}
	w, err := openWriter(dir, options)
	require.NoError(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// plainRecord is a record of a group without summaries.
func plainRecord(content Content, id, size int, group ...string) Record {
	return Record{Group: group, Data: newRecord(content, id, size)}
}

// closeFiles closes what is open, so that the Writer holds no file.
func closeFiles(t testing.TB, w *Writer) {
	for _, g := range w.groups {
		g.mu.Lock()
		require.NoError(t, g.closeFile(ByAge))
		g.mu.Unlock()
	}
}

// list gives the names in a directory.
func list(t testing.TB, dir string) []string {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// readAll gives the ids of all records in all finished files of a directory, in
// order, and requires that each is as it was made and that nothing is damaged.
func readAll(t testing.TB, dir string, size int) []int {
	ids := []int{}
	for _, name := range list(t, dir) {
		parsed, ok := ParseName(name)
		if !ok || parsed.Partial {
			continue
		}
		inFile := readFile(t, filepath.Join(dir, name), parsed.Format.Content, size)
		require.NotEmpty(t, inFile, "%s has no records", name)
		ids = append(ids, inFile...)
	}
	return ids
}

// openReader reads a file. The Reader must be closed.
func openReader(t testing.TB, path string) *Reader {
	name, ok := ParseName(filepath.Base(path))
	require.True(t, ok, path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return NewReader(bytes.NewReader(data), int64(len(data)), name.Format, MaxRecordSize)
}

// readFile gives the ids of the records of a file, whose size is that of their content, or -1 for any.
func readFile(t testing.TB, path string, content Content, size int) []int {
	r := openReader(t, path)
	defer r.Close()
	ids := []int{}
	for record, err := range r.All() {
		require.NoError(t, err)
		id, known := recordID(content, record, max(size, 0))
		require.True(t, known || size < 0, "record %d", id)
		ids = append(ids, id)
	}
	return ids
}

// faults makes calls of the file system fail.
type faults struct {
	mu    sync.Mutex
	calls int
	// The calls from, counted from 1, up to but without to fail.
	from, to int
	// before is asked before each call instead, if it is set.
	before func(call) error
	short  bool // a failing write writes half
	silent bool // and then says nothing
	noSync bool // what is synced is only counted
	failed int
}

// call is a call of the file system.
type call struct {
	op   string // the method of Dir, or of File in lower case
	path string // below the directory of the Writer
	end  int64  // of a write
}

var errnos = []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EFBIG}

func (f *faults) next(c call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		return f.before(c)
	}
	f.calls++
	if f.calls < f.from || f.calls >= f.to {
		return nil
	}
	f.failed++
	return fmt.Errorf("call %d: %w", f.calls, errnos[f.calls%len(errnos)])
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.from, f.to = 0, 0
}

// do makes a call, unless it fails.
func (f *faults) do(c call, do func() error) error {
	if err := f.next(c); err != nil {
		return err
	}
	return do()
}

// get is do of a call with a result.
func get[T any](f *faults, c call, do func() (T, error)) (result T, err error) {
	err = f.do(c, func() (err error) {
		result, err = do()
		return err
	})
	return result, err
}

func (f *faults) openDir(path string, group ...string) (Dir, error) {
	return f.dir(call{"OpenDir", filepath.Join(group...), 0}, func() (Dir, error) { return OpenDir(path, group...) })
}

// dir opens a directory.
func (f *faults) dir(c call, open func() (Dir, error)) (Dir, error) {
	dir, err := get(f, c, open)
	if err != nil {
		return nil, err
	}
	return &faultyDir{dir, f, c.path}, nil
}

type faultyDir struct {
	Dir
	faults *faults
	path   string
}

func (d *faultyDir) call(op, name string) call { return call{op, filepath.Join(d.path, name), 0} }

func (d *faultyDir) Create(name string) (File, error) { return d.open("Create", name, d.Dir.Create) }
func (d *faultyDir) Open(name string) (File, error)   { return d.open("Open", name, d.Dir.Open) }

func (d *faultyDir) open(op, name string, open func(string) (File, error)) (File, error) {
	file, err := get(d.faults, d.call(op, name), func() (File, error) { return open(name) })
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, d.faults, filepath.Join(d.path, name)}, nil
}

func (d *faultyDir) Lstat(name string) (fs.FileInfo, error) {
	return get(d.faults, d.call("Lstat", name), func() (fs.FileInfo, error) { return d.Dir.Lstat(name) })
}

func (d *faultyDir) LstatPath(name string) (fs.FileInfo, error) {
	return get(d.faults, d.call("LstatPath", name), func() (fs.FileInfo, error) { return d.Dir.LstatPath(name) })
}

func (d *faultyDir) Rename(from, to string) error {
	return d.faults.do(d.call("Rename", from), func() error { return d.Dir.Rename(from, to) })
}

func (d *faultyDir) Remove(name string) error {
	return d.faults.do(d.call("Remove", name), func() error { return d.Dir.Remove(name) })
}

func (d *faultyDir) Names() ([]string, error) {
	return get(d.faults, d.call("Names", ""), d.Dir.Names)
}

func (d *faultyDir) OpenChild(name string) (Dir, error) {
	return d.faults.dir(d.call("OpenChild", name), func() (Dir, error) { return d.Dir.OpenChild(name) })
}

func (d *faultyDir) Sync() error {
	return d.faults.sync(d.call("Sync", ""), d.Dir.Sync)
}

func (f *faults) sync(c call, sync func() error) error {
	if f.noSync {
		sync = func() error { return nil }
	}
	return f.do(c, sync)
}

func (d *faultyDir) Close() error { return d.faults.close(d.call("Close", ""), d.Dir) }

// close closes also if the call fails.
func (f *faults) close(c call, closed io.Closer) error { return errors.Join(f.next(c), closed.Close()) }

type faultyFile struct {
	File
	faults *faults
	path   string
}

func (f *faultyFile) ReadAt(p []byte, at int64) (int, error) {
	return get(f.faults, call{"read", f.path, 0}, func() (int, error) { return f.File.ReadAt(p, at) })
}

func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	err := f.faults.next(call{"write", f.path, at + int64(len(p))})
	if err == nil {
		return f.File.WriteAt(p, at)
	}
	n := 0
	if f.faults.short {
		n, _ = f.File.WriteAt(p[:len(p)/2], at)
		if f.faults.silent {
			err = nil
		}
	}
	return n, err
}

func (f *faultyFile) Truncate(size int64) error {
	return f.faults.do(call{"truncate", f.path, 0}, func() error { return f.File.Truncate(size) })
}

func (f *faultyFile) Sync() error { return f.faults.sync(call{"sync", f.path, 0}, f.File.Sync) }

func (f *faultyFile) Stat() (fs.FileInfo, error) {
	return get(f.faults, call{"stat", f.path, 0}, f.File.Stat)
}

func (f *faultyFile) Lock() error { return f.faults.do(call{"lock", f.path, 0}, f.File.Lock) }

func (f *faultyFile) Close() error { return f.faults.close(call{"close", f.path, 0}, f.File) }
