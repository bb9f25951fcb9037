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

// osDir is a directory of the operating system. Nothing outside of it can be
// reached through it, whatever links are planted in it.
type osDir struct {
	path string
	root *os.Root
	self *os.File
	info fs.FileInfo
}

// OpenDir opens the directory at path, and makes it and those above it (mode
// 0700, and on the disk) where they are missing. With a group, which are names of
// directories one inside the other, it opens and makes that below path, and follows
// no link there. An error names the path.
func OpenDir(path string, group ...string) (Dir, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("directory %q: %w", path, err)
	}
	if err := makeDirs(absolute); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(absolute)
	if err != nil {
		return nil, err
	}
	base, err := newDir(root, absolute)
	if err != nil {
		return nil, err
	}
	var dir Dir = base
	for _, name := range group {
		below, err := enterOrMake(dir, name)
		if err != nil {
			return nil, errors.Join(err, dir.Close())
		}
		_ = dir.Close() // nothing was written through it
		dir = below
	}
	return dir, nil
}

func enterOrMake(dir Dir, name string) (Dir, error) {
	below, err := dir.Enter(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return below, err
	}
	if err := dir.Make(name); err != nil {
		return nil, err
	}
	return dir.Enter(name)
}

// newDir takes the root over, and closes it if it fails.
func newDir(root *os.Root, absolute string) (*osDir, error) {
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	info, err := self.Stat()
	if err != nil {
		return nil, errors.Join(err, self.Close(), root.Close())
	}
	return &osDir{path: absolute, root: root, self: self, info: info}, nil
}

// makeDirs makes what is missing of path, from the top.
func makeDirs(path string) error {
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return &fs.PathError{Op: "mkdir", Path: path, Err: errorString("not a directory")}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrNotExist}
	}
	if err := makeDirs(parent); err != nil {
		return err
	}
	return makeSynced(
		func() error { return os.Mkdir(path, dirPermission) },
		func() error {
			above, err := os.Open(parent)
			if err != nil {
				return nil //nolint:nilerr // a parent that may be passed but not read cannot be synced
			}
			return errors.Join(syncDir(above), above.Close())
		},
		func() error { return os.Remove(path) },
	)
}

// makeSynced makes a directory and syncs the one above. If that fails it removes what
// it has made: what is there already is not synced again.
func makeSynced(mkdir, sync, rmdir func() error) error {
	made := mkdir()
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return made
	}
	err := sync()
	if err != nil && made == nil {
		err = errors.Join(err, rmdir())
	}
	return err
}

func (d *osDir) Create(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePermission)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *osDir) Open(name string) (File, error) {
	f, err := d.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (d *osDir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

func (d *osDir) Find(name string) (fs.FileInfo, error) {
	return os.Lstat(d.path + string(filepath.Separator) + name)
}

func (d *osDir) Rename(from, to string) error { return d.renameNoReplace(from, to) }

func (d *osDir) Remove(name string) error { return d.root.Remove(name) }

func (d *osDir) List() ([]string, error) {
	// d.self would go on where the last listing ended.
	self, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	list, err := self.Readdirnames(-1)
	slices.Sort(list)
	return list, errors.Join(err, self.Close())
}

func (d *osDir) Enter(name string) (Dir, error) {
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
	below, err := newDir(root, path)
	if err != nil {
		return nil, err
	}
	if !os.SameFile(found, below.info) {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: path, Err: ErrGone}, below.Close())
	}
	return below, nil
}

func (d *osDir) Make(name string) error {
	return makeSynced(
		func() error { return d.root.Mkdir(name, dirPermission) },
		d.Sync,
		func() error { return d.root.Remove(name) },
	)
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

// linkAndRemove renames where the system cannot do so without replacing. After a
// crash between its two steps repair finds both names and removes the first.
func (d *osDir) linkAndRemove(from, to string) error {
	err := d.root.Link(from, to)
	if err == nil {
		return d.root.Remove(from)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A file system without links, such as FAT: look, then rename.
	if _, err := d.root.Lstat(to); err == nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: fs.ErrExist}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.root.Rename(from, to)
}

type osFile struct{ *os.File }

func (f osFile) Lock() (bool, error) { return lockFile(f.File) }
