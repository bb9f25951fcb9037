// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import "io/fs"

// Dir is what this package needs of a directory. All names are those of entries
// of it. Tests put faults between it and the real one, which OpenDir gives.
type Dir interface {
	// Create makes an empty file and opens it to read and write. The error is
	// fs.ErrExist if the name is taken by anything.
	Create(name string) (File, error)
	// Open opens an existing file to read and write.
	Open(name string) (File, error)
	// Lstat tells of the entry itself.
	Lstat(name string) (fs.FileInfo, error)
	// Find tells of the entry at the path that the directory was opened by, which
	// may lead elsewhere now.
	Find(name string) (fs.FileInfo, error)
	// Rename gives a file another name. The error is fs.ErrExist if that name is
	// taken by anything.
	Rename(from, to string) error
	// Remove takes an entry away; a directory only if it is empty.
	Remove(name string) error
	// List gives the names of all entries, sorted.
	List() ([]string, error)
	// Enter opens the directory of that name, which is in this one. A link is no
	// directory, wherever it leads. The error is fs.ErrNotExist if there is nothing
	// of that name, and ErrNotDirectory if it is something else.
	Enter(name string) (Dir, error)
	// Make makes a directory of that name, or lets one that exists be, and puts it
	// on the disk. If that fails, what it has made is removed again.
	Make(name string) error
	// Sync puts what was created, renamed and removed on the disk.
	Sync() error
	// Current says whether the path that the directory was opened by still leads
	// to it.
	Current() (bool, error)
	Close() error
}

// File is what this package needs of an open file.
type File interface {
	ReadAt(p []byte, offset int64) (int, error)
	WriteAt(p []byte, offset int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	// Lock takes the file's advisory lock for as long as it is open, and returns
	// false if another has it. It does not wait.
	Lock() (bool, error)
	Close() error
}
