// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
)

// ErrNotDirectory means that a file or link has the name of a directory. A retry does not help until it is removed.
var ErrNotDirectory = errors.New("not a directory")

const (
	filePermission = 0o600
	dirPermission  = 0o700
)

// Dir is a directory as this package uses it. Tests inject faults into the one that
// OpenDir returns. Names are relative to it.
type Dir interface {
	// Create creates an empty file. The error is fs.ErrExist if the name is taken.
	Create(name string) (Handle, error)
	// Open opens an existing file to read and write, OpenToRead to read.
	Open(name string) (Handle, error)
	OpenToRead(name string) (Handle, error)
	Lstat(name string) (fs.FileInfo, error)
	// LstatPath is Lstat by path instead of handle, to detect that the directory was replaced.
	LstatPath(name string) (fs.FileInfo, error)
	// Rename never replaces anything: the error is fs.ErrExist if the name is taken. Names may be paths below the directory.
	Rename(from, to string) error
	// Replace gives a file the name of another one, which it replaces in one step.
	Replace(from, to string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// Names returns those of all entries, sorted. There may be 100,000, of which it needs little memory.
	Names() ([]string, error)
	// OpenChild opens an existing subdirectory. It follows no link.
	OpenChild(name string) (Dir, error)
	// TryLock takes the advisory lock of the directory until Close, alone or shared. It returns false if another open
	// directory has it.
	TryLock(shared bool) (bool, error)
	// Exists reports whether the path still leads to this directory.
	Exists() bool
	// Sync puts created, renamed and removed entries on the disk.
	Sync() error
	Close() error
}

// Handle is an open file as this package uses it.
type Handle interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
}

// osDir is a directory of the operating system. Links in it cannot lead out of it.
type osDir struct {
	path string
	root *os.Root
	self *os.File
}

// OpenDir opens the directory at path, or the one inside the others below it. It creates
// missing directories (mode 0700) and syncs their parents. Below path it follows no link.
func OpenDir(path string, inside ...string) (Dir, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("directory %q: %w", path, err)
	}
	dir, err := openPath(absolute)
	if err != nil {
		return nil, err
	}
	for _, name := range inside {
		child, err := dir.openOrCreate(name)
		_ = dir.Close() // nothing was written through it
		if err != nil {
			return nil, err
		}
		dir = child
	}
	return dir, nil
}

// openPath opens the directory at an absolute path. It creates the directory, and those
// above it, if they are missing.
func openPath(path string) (*osDir, error) {
	root, err := os.OpenRoot(path)
	if parent := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) && parent != path {
		above, err := openPath(parent)
		if err != nil {
			return nil, err
		}
		defer func() { _ = above.Close() }()
		return above.openOrCreate(filepath.Base(path))
	}
	if err != nil {
		return nil, err
	}
	return newDir(path, root)
}

// newDir takes ownership of the root, and closes it if it fails.
func newDir(path string, root *os.Root) (*osDir, error) {
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &osDir{path: path, root: root, self: self}, nil
}

func (d *osDir) openOrCreate(name string) (*osDir, error) {
	child, err := d.openChild(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.create(name); err == nil {
			child, err = d.openChild(name)
		}
	}
	return child, err
}

// create creates a subdirectory and syncs this directory. If the sync fails it removes
// the subdirectory again: an existing one would not be synced later.
func (d *osDir) create(name string) error {
	mkdirErr := d.root.Mkdir(name, dirPermission)
	err := mkdirErr
	if mkdirErr == nil || errors.Is(mkdirErr, fs.ErrExist) {
		err = d.Sync()
	}
	if err != nil && mkdirErr == nil {
		err = errors.Join(err, d.root.Remove(name))
	}
	if err != nil {
		return fmt.Errorf("create directory %s: %w", filepath.Join(d.path, name), err)
	}
	return nil
}

func (d *osDir) openChild(name string) (*osDir, error) {
	path := filepath.Join(d.path, name)
	info, err := d.root.Lstat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotDirectory}
	}
	if err != nil {
		return nil, err
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	return newDir(path, root)
}

func (d *osDir) OpenChild(name string) (Dir, error) { return d.openChild(name) }

func (d *osDir) Create(name string) (Handle, error) {
	return d.openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d *osDir) Open(name string) (Handle, error) { return d.openFile(name, os.O_RDWR) }

func (d *osDir) OpenToRead(name string) (Handle, error) {
	return d.openFile(name, os.O_RDONLY|syscall.O_NONBLOCK)
}

func (d *osDir) openFile(name string, flag int) (Handle, error) {
	f, err := d.root.OpenFile(name, flag, filePermission)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *osDir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

func (d *osDir) LstatPath(name string) (fs.FileInfo, error) {
	return os.Lstat(d.path + string(filepath.Separator) + name)
}

// Rename links and removes, since no rename of the os package refuses to replace a file.
// If only the first step succeeded, the next call takes the second one.
func (d *osDir) Rename(from, to string) error {
	err := d.root.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) && d.sameFile(from, to) {
		return d.root.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The file system has no links.
	if _, err := d.root.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.root.Rename(from, to)
}

func (d *osDir) sameFile(a, b string) bool {
	first, _ := d.root.Lstat(a)
	second, _ := d.root.Lstat(b)
	return os.SameFile(first, second) // false if one of them is missing
}

func (d *osDir) Replace(from, to string) error { return d.root.Rename(from, to) }

func (d *osDir) Remove(name string) error { return d.root.Remove(name) }

func (d *osDir) Names() ([]string, error) {
	listed, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := listed.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, listed.Close())
}

func (d *osDir) Sync() error {
	err := d.self.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // this system or file system cannot sync a directory
	}
	return err
}

func (d *osDir) Close() error { return errors.Join(d.self.Close(), d.root.Close()) }

func (d *osDir) TryLock(shared bool) (bool, error) {
	if shared {
		return regularfile.TryLockShared(d.self)
	}
	return regularfile.TryLock(d.self)
}

func (d *osDir) Exists() bool {
	own, ownErr := d.self.Stat()
	named, err := os.Lstat(d.path)
	return ownErr == nil && err == nil && os.SameFile(own, named)
}

// WriteAt writes all of data.
func WriteAt(f Handle, data []byte, at int64) error {
	n, err := f.WriteAt(data, at)
	if err == nil && n != len(data) {
		err = io.ErrShortWrite
	}
	return err
}
