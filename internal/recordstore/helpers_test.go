// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordstore

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

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment/segmenttest"
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
		parsed, ok := segment.ParseName(name)
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
func openReader(t testing.TB, path string) *segment.Reader {
	name, ok := segment.ParseName(filepath.Base(path))
	require.True(t, ok, path)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := segment.NewReader(bytes.NewReader(data), int64(len(data)), name.Format, segment.MaxRecordSize)
	require.NoError(t, err)
	return r
}

func readFile(t testing.TB, path string, content segment.Content, size int) []int {
	r := openReader(t, path)
	defer r.Close()
	ids := []int{}
	for record, err := range r.All() {
		require.NoError(t, err)
		id, known := segmenttest.ID(content, record, size)
		require.True(t, known, "record %d", id)
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
	short    bool // a failing write writes half
	silent   bool // and then says nothing
	noSync   bool // what is synced is only counted
	failed   int
	before   func() error // if set, is asked before each call
}

var errnos = []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EFBIG}

func (f *faults) next() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		return f.before()
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

func (f *faults) openDir(path string, group ...string) (Dir, error) {
	if err := f.next(); err != nil {
		return nil, err
	}
	dir, err := OpenDir(path, group...)
	if err != nil {
		return nil, err
	}
	return &faultyDir{Dir: dir, faults: f}, nil
}

type faultyDir struct {
	Dir
	faults *faults
}

func (d *faultyDir) Create(name string) (File, error) { return d.open(d.Dir.Create, name) }
func (d *faultyDir) Open(name string) (File, error)   { return d.open(d.Dir.Open, name) }

func (d *faultyDir) open(open func(string) (File, error), name string) (File, error) {
	if err := d.faults.next(); err != nil {
		return nil, err
	}
	file, err := open(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: file, faults: d.faults}, nil
}

func (d *faultyDir) Lstat(name string) (fs.FileInfo, error) {
	if err := d.faults.next(); err != nil {
		return nil, err
	}
	return d.Dir.Lstat(name)
}

func (d *faultyDir) LstatPath(name string) (fs.FileInfo, error) {
	if err := d.faults.next(); err != nil {
		return nil, err
	}
	return d.Dir.LstatPath(name)
}

func (d *faultyDir) Rename(from, to string) error {
	if err := d.faults.next(); err != nil {
		return err
	}
	return d.Dir.Rename(from, to)
}

func (d *faultyDir) Remove(name string) error {
	if err := d.faults.next(); err != nil {
		return err
	}
	return d.Dir.Remove(name)
}

func (d *faultyDir) List() ([]fs.DirEntry, error) {
	if err := d.faults.next(); err != nil {
		return nil, err
	}
	return d.Dir.List()
}

func (d *faultyDir) OpenChild(name string) (Dir, error) {
	if err := d.faults.next(); err != nil {
		return nil, err
	}
	dir, err := d.Dir.OpenChild(name)
	if err != nil {
		return nil, err
	}
	return &faultyDir{Dir: dir, faults: d.faults}, nil
}

func (d *faultyDir) Sync() error {
	if err := d.faults.next(); err != nil || d.faults.noSync {
		return err
	}
	return d.Dir.Sync()
}

func (d *faultyDir) Close() error {
	if err := d.faults.next(); err != nil {
		return errors.Join(err, d.Dir.Close())
	}
	return d.Dir.Close()
}

type faultyFile struct {
	File
	faults *faults
}

func (f *faultyFile) ReadAt(p []byte, at int64) (int, error) {
	if err := f.faults.next(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, at)
}

func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	err := f.faults.next()
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
	if err := f.faults.next(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.faults.next(); err != nil || f.faults.noSync {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Stat() (fs.FileInfo, error) {
	if err := f.faults.next(); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *faultyFile) Lock() (bool, error) {
	if err := f.faults.next(); err != nil {
		return false, err
	}
	return f.File.Lock()
}

func (f *faultyFile) Close() error {
	if err := f.faults.next(); err != nil {
		return errors.Join(err, f.File.Close())
	}
	return f.File.Close()
}

var _ io.ReaderAt = File(nil)
