// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"syscall"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// The results of handling a file, besides nil. After any other error, the file is skipped until it changes.
var (
	// ErrChanged means that a file is no longer the version that was found. A later poll finds it again.
	ErrChanged = errors.New("file changed while it was read")
	// ErrRemoved means that the Handler has removed the file, or that it is gone.
	ErrRemoved = errors.New("the file was removed")
)

// RetryError is an error after which the file is handled again.
type RetryError struct {
	Err      error
	Rejected bool // by the pipeline, which may reject other files, too
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

// File is a version of a file.
type File struct {
	Path     string    // absolute
	Relative string    // below the directory, or the fixed part of the glob that it matches
	Size     int64     // bytes
	Modified time.Time // last change of the content
	// Stored is the file in the directory of a profiles_file exporter; nil is one of another program.
	Stored *layout.File

	base    string // a directory; no link leads out of it
	version version
	state   *state
}

// Open opens the file. The error is ErrChanged, or a *RetryError if the file cannot be opened.
func (f *File) Open() (*os.File, error) {
	root, err := os.OpenRoot(f.base)
	if err != nil {
		return nil, &RetryError{Err: err}
	}
	defer func() { _ = root.Close() }()
	opened, err := root.OpenFile(f.Relative, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO without a writer blocks otherwise
	if err != nil {
		return nil, &RetryError{Err: err}
	}
	if err := f.Unchanged(opened); err != nil {
		_ = opened.Close()
		return nil, err
	}
	return opened, nil
}

// Unchanged returns an error unless the open file is still the version that was found, under a
// name: removing a name changes the version, on systems with inodes.
func (f *File) Unchanged(opened *os.File) error {
	info, err := opened.Stat()
	switch {
	case err != nil:
		return &RetryError{Err: err}
	case !info.Mode().IsRegular() || versionOf(info) != f.version:
		return ErrChanged
	}
	return nil
}

// CheckPath returns ErrChanged if the path leads to another file or to other content than the one
// found, and fs.ErrNotExist if it leads to no file.
func (f *File) CheckPath() error {
	root, err := os.OpenRoot(f.base)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(f.Relative)
	if err == nil && !versionOf(info).sameContent(f.version) {
		err = ErrChanged
	}
	return err
}

// version identifies the content of a file without reading it. It is stored in checkpoints.
type version struct {
	Size    int64
	ModTime int64 // nanoseconds since the epoch

	// 0 on systems that do not have them.
	Device     uint64 `json:",omitempty"`
	Inode      uint64 `json:",omitempty"`
	ChangeTime int64  `json:",omitempty"` // last status change, in nanoseconds since the epoch
}

func versionOf(info fs.FileInfo) version {
	v := version{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	stat := reflect.Indirect(reflect.ValueOf(info.Sys())) // a syscall.Stat_t on Unix
	if stat.Kind() != reflect.Struct {
		return v
	}
	for name, to := range map[string]*uint64{"Ino": &v.Inode, "Dev": &v.Device} {
		if field := stat.FieldByName(name); field.IsValid() {
			*to = field.Convert(reflect.TypeFor[uint64]()).Uint() // some systems have a signed device
		}
	}
	for _, name := range []string{"Ctim", "Ctimespec"} { // on Linux, and on macOS and BSD
		if field := stat.FieldByName(name); field.IsValid() {
			changed := field.Interface().(syscall.Timespec)
			v.ChangeTime = changed.Nano()
		}
	}
	return v
}

// sameContent reports whether two versions have the same content. A file that replaces
// another has another inode and another change time. One difference alone proves nothing:
// some file systems renumber inodes with each mount, ext4 reuses the inode of a file that
// was just removed, and a new link or new permissions set the change time.
func (v version) sameContent(other version) bool {
	return v.Size == other.Size && v.ModTime == other.ModTime &&
		(v.ChangeTime == 0 || other.ChangeTime == 0 || v.ChangeTime == other.ChangeTime || v.Inode == other.Inode)
}

// identity is the part of a version that stays when its file is renamed, which sets the change time. It is zero on
// systems without inodes.
func (v version) identity() version {
	if v.Inode == 0 {
		return version{}
	}
	v.ChangeTime = 0
	return v
}
