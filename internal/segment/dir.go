// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

const (
	filePermission = 0o600
	dirPermission  = 0o700
)

// Dir is a directory as this package uses it. Tests inject faults into the one that
// OpenDir returns. Names are those of its entries.
type Dir interface {
	// Create creates an empty file. The error is fs.ErrExist if the name is taken.
	Create(name string) (File, error)
	// Open opens an existing file to read and write.
	Open(name string) (File, error)
	Lstat(name string) (fs.FileInfo, error)
	// LstatPath is Lstat by the path of the directory, which another one may have by now.
	LstatPath(name string) (fs.FileInfo, error)
	// Rename never replaces anything: the error is fs.ErrExist if the name is taken.
	Rename(from, to string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// List returns the names of all entries, sorted.
	List() ([]string, error)
	// OpenChild opens a subdirectory. It follows no link. The error is fs.ErrNotExist if
	// the name is free, and ErrNotDirectory if it is taken by something else.
	OpenChild(name string) (Dir, error)
	// Sync puts created, renamed and removed entries on the disk.
	Sync() error
	// Current reports whether the path still leads to the directory.
	Current() (bool, error)
	Close() error
}

// File is an open file as this package uses it.
type File interface {
	ReadAt(p []byte, offset int64) (int, error)
	WriteAt(p []byte, offset int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	// Lock takes the advisory lock until Close. It returns false if another open file has
	// it.
	Lock() (bool, error)
	Close() error
}

// osDir is a directory of the operating system. Links in it cannot lead out of it.
type osDir struct {
	path string
	root *os.Root
	self *os.File
	info fs.FileInfo
}

// OpenDir opens the directory at path, or the one for the group below it. It creates
// missing directories (mode 0700) and syncs their parents. Below path it follows no link.
func OpenDir(path string, group ...string) (Dir, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("directory %q: %w", path, err)
	}
	dir, err := openPath(absolute)
	if err != nil {
		return nil, err
	}
	for _, name := range group {
		child, err := dir.openChild(name)
		if errors.Is(err, fs.ErrNotExist) {
			if err = dir.create(name); err == nil {
				child, err = dir.openChild(name)
			}
		}
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
		above, openErr := openPath(parent)
		if openErr != nil {
			return nil, openErr
		}
		err = above.create(filepath.Base(path))
		_ = above.Close()
		if err == nil {
			root, err = os.OpenRoot(path)
		}
	}
	if err != nil {
		return nil, err
	}
	return newDir(root, path)
}

// newDir takes ownership of the root, and closes it if it fails.
func newDir(root *os.Root, path string) (*osDir, error) {
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	info, err := self.Stat()
	if err != nil {
		return nil, errors.Join(err, self.Close(), root.Close())
	}
	return &osDir{path: path, root: root, self: self, info: info}, nil
}

// create creates a subdirectory and syncs this directory. If the sync fails it removes
// the subdirectory again: an existing one would not be synced later.
func (d *osDir) create(name string) error {
	created := d.root.Mkdir(name, dirPermission)
	err := created
	if created == nil || errors.Is(created, fs.ErrExist) {
		err = d.Sync()
	}
	if err != nil && created == nil {
		err = errors.Join(err, d.root.Remove(name))
	}
	if err != nil {
		return fmt.Errorf("create directory %s: %w", filepath.Join(d.path, name), err)
	}
	return nil
}

func (d *osDir) Create(name string) (File, error) {
	return d.openFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (d *osDir) Open(name string) (File, error) { return d.openFile(name, os.O_RDWR) }

func (d *osDir) openFile(name string, flag int) (File, error) {
	f, err := d.root.OpenFile(name, flag, filePermission)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *osDir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

func (d *osDir) LstatPath(name string) (fs.FileInfo, error) {
	return os.Lstat(d.path + string(filepath.Separator) + name)
}

// Rename links and removes, since no rename of the os package refuses to replace a file.
// If the process ends between the two steps, the next repair removes the first name.
func (d *osDir) Rename(from, to string) error {
	err := d.root.Link(from, to)
	if err == nil {
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

func (d *osDir) Remove(name string) error { return d.root.Remove(name) }

func (d *osDir) List() ([]string, error) {
	// d.self would continue where the last listing ended.
	self, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := self.Readdirnames(-1)
	slices.Sort(names)
	return names, errors.Join(err, self.Close())
}

func (d *osDir) OpenChild(name string) (Dir, error) {
	child, err := d.openChild(name)
	if err != nil {
		return nil, err
	}
	return child, nil
}

func (d *osDir) openChild(name string) (*osDir, error) {
	path := filepath.Join(d.path, name)
	found, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !found.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: ErrNotDirectory}
	}
	root, err := d.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	child, err := newDir(root, path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(found, child.info) { // a link took its place
		return nil, errors.Join(&fs.PathError{Op: "open", Path: path, Err: ErrGone}, child.Close())
	}
	return child, nil
}

func (d *osDir) Sync() error { return syncDir(d.self) }

func (d *osDir) Current() (bool, error) {
	info, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return false, nil
	case err != nil:
		return false, err
	default:
		return os.SameFile(info, d.info), nil
	}
}

func (d *osDir) Close() error { return errors.Join(d.self.Close(), d.root.Close()) }

type osFile struct{ *os.File }

func (f osFile) Lock() (bool, error) { return lockFile(f.File) }
