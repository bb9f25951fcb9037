// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// File is a file to read.
type File struct {
	Path string
	// Size is in bytes when the file was found, 0 if it has none, as standard input.
	Size int64
	// Modified is when the file was last written, in nanoseconds since the epoch, 0 for standard input.
	Modified int64
	// Index: there is an index beside it.
	Index bool
}

// Find lists the files that paths name, each once. A directory stands for the regular files
// below it, sorted by name, apart from hidden files. Indexes are left out. Paths that cannot be read are in
// failed.
func Find(paths []string) (files []File, failed []error) {
	f := finder{named: make(map[string]bool, len(paths))}
	f.readers.SetLimit(concurrentReaders)
	for _, path := range paths {
		f.named[path] = true
	}
	for _, path := range paths {
		if path == Stdin {
			files = append(files, File{Path: Stdin})
			continue
		}
		info, err := os.Stat(path) // also of a link, a pipe or a file with any name
		switch {
		case err != nil:
			failed = append(failed, err)
		case info.IsDir():
			var d directory
			f.read(&d, path)
			_ = f.readers.Wait() // none returns an error
			files, failed = d.appendTo(files, failed)
		case !isIndex(filepath.Base(path)): // as a pattern of the shell may name one
			files = append(files, File{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano(), Index: hasIndex(path)})
		}
	}
	nameOf := func(path string) string { return path } // enough below one path, which may have 100,000 files
	if len(paths) > 1 {
		nameOf = absolute()
	}
	return withoutRenamed(files, nameOf), failed
}

// absolute returns a function that returns the absolute form of a path. Paths may name a file in several ways.
func absolute() func(path string) string {
	directory, _ := os.Getwd() // without it, relative paths stay relative
	return func(path string) string {
		if path == Stdin || filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
		return filepath.Join(directory, path)
	}
}

// concurrentReaders is how many directories are read at a time: a disk takes little longer for several requests.
const concurrentReaders = 8

type finder struct {
	named   map[string]bool // the paths of Find
	readers errgroup.Group
}

// directory is the content of a directory.
type directory struct {
	files          []File
	subdirectories []subdirectory
	err            error
}

type subdirectory struct {
	*directory
	place int // in the files of the directory above
}

func (f *finder) read(d *directory, path string) {
	var entries []os.DirEntry
	entries, d.err = os.ReadDir(path)
	prefix := strings.TrimSuffix(filepath.Join(path, "x"), "x")
	for _, entry := range entries {
		name := entry.Name()
		of, isIndex := strings.CutSuffix(name, recordfile.IndexSuffix)
		switch {
		case strings.HasPrefix(name, ".") && !f.named[prefix+name]:
		case entry.IsDir():
			below := &directory{}
			d.subdirectories = append(d.subdirectories, subdirectory{below, len(d.files)})
			read := func() error { f.read(below, prefix+name); return nil }
			if !f.readers.TryGo(read) {
				_ = read()
			}
		case !entry.Type().IsRegular():
		case isIndex:
			// Entries are sorted, so that the file was the one before.
			if n := len(d.files); n > 0 && d.files[n-1].Path[len(prefix):] == of {
				d.files[n-1].Index = true
			}
		default:
			at := prefix + name
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) && isPartial(name) { // it has just been closed
				at = closedPath(at)
				info, err = os.Lstat(at)
			}
			switch {
			case err == nil:
				d.files = append(d.files, File{Path: at, Size: info.Size(), Modified: info.ModTime().UnixNano()})
			case !errors.Is(err, fs.ErrNotExist): // else it has just been removed
				d.err = cmp.Or(d.err, err) // as for all files of a directory that may be listed, but not searched
			}
		}
	}
}

// appendTo appends the files in the directory and below.
func (d *directory) appendTo(files []File, failed []error) ([]File, []error) {
	if d.err != nil {
		failed = append(failed, d.err)
	}
	place := 0
	for _, below := range d.subdirectories {
		files = append(files, d.files[place:below.place]...)
		files, failed = below.appendTo(files, failed)
		place = below.place
	}
	return append(files, d.files[place:]...), failed
}

// isIndex reports whether a name is that of the index of one of the exporter's files.
func isIndex(name string) bool {
	of, found := strings.CutSuffix(name, recordfile.IndexSuffix)
	_, ours := recordfile.ParseName(of)
	return found && ours
}

// hasIndex reports whether there is an index beside a file.
func hasIndex(path string) bool {
	info, err := os.Lstat(path + recordfile.IndexSuffix)
	return err == nil && info.Mode().IsRegular()
}

// withoutRenamed drops repeated files, whose paths are equal in the form that nameOf returns, and incomplete files
// that were closed, and so got their final name, while the directory was listed.
func withoutRenamed(files []File, nameOf func(path string) string) []File {
	seen := make(map[string]bool, len(files))
	files = slices.DeleteFunc(files, func(f File) bool {
		name := nameOf(f.Path)
		repeated := seen[name]
		seen[name] = true
		return repeated
	})
	return slices.DeleteFunc(files, func(f File) bool { return isPartial(f.Path) && seen[closedPath(nameOf(f.Path))] })
}

const partialSuffix = ".partial"

func isPartial(path string) bool { return strings.HasSuffix(path, partialSuffix) }

// closedPath is the path that an incomplete file gets when it is closed.
func closedPath(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, partialSuffix), ".bare")
}
