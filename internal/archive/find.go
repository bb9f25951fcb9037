// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// descriptors is the directory of the open files of a process. Shells name a pipe in it for <(command).
const descriptors = "/dev/fd/"

// errNotRegular concerns, for instance, a named pipe: to open it would wait for a writer.
var errNotRegular = errors.New("is not a regular file: must be a file or directory, or - for standard input")

// Stdin is the path that stands for standard input.
const Stdin = "-"

// File is a file to read.
type File struct {
	Path string
	// Size is in bytes when the file was found, 0 if it has none, as standard input.
	Size int64
}

// Find lists the files that paths name, each once. A directory stands for the regular files below it, sorted by name, apart from hidden
// files and the directories that others read: Find calls reads once with each directory, and leaves out those for which it is true. Paths
// that cannot be read, and devices and named pipes, are in failed.
func Find(paths []string, reads func(directory string) bool) (files []File, failed []error) {
	f := &finder{named: paths, reads: reads, read: map[string]bool{}, known: map[string]bool{}}
	for _, path := range paths {
		if path == Stdin {
			f.files = append(f.files, File{Path: Stdin})
			continue
		}
		info, err := os.Stat(path) // also of a link or a file with any name
		switch {
		case err != nil:
			failed = append(failed, err)
		case info.IsDir():
			_ = f.walk(path) // a file that is renamed has neither of its names in a list that is made meanwhile, but the next one has the new name
			failed = append(failed, f.walk(path)...)
		case !info.Mode().IsRegular() && !isDescriptor(path):
			failed = append(failed, &fs.PathError{Op: "open", Path: path, Err: errNotRegular})
		default:
			f.files = append(f.files, File{path, info.Size()})
		}
	}
	return withoutRepeated(f.files), failed
}

// finder finds the files below directories.
type finder struct {
	named []string // hidden files count if they are
	reads func(directory string) bool
	read  map[string]bool // what reads has returned, by directory
	known map[string]bool // paths of files
	files []File
}

// walk adds the files below a directory that are not known. Errors are of some of the directories in it, one of each.
func (f *finder) walk(directory string) (failed []error) {
	root := strings.TrimSuffix(directory, string(filepath.Separator)) + string(filepath.Separator) // so that a link is followed

	var unsearchable string // the last directory with a file about which nothing is known
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // it has just been removed
			return nil
		}
		if err != nil {
			failed = append(failed, err)
			return nil
		}
		isHidden := path != root && strings.HasPrefix(entry.Name(), ".") && !slices.Contains(f.named, path)
		switch {
		case entry.IsDir() && (isHidden || f.isRead(filepath.Clean(path))):
			return fs.SkipDir
		case isHidden || !entry.Type().IsRegular() || f.known[path]:
			return nil
		}
		info, err := entry.Info()
		switch {
		case err == nil:
			f.known[path] = true
			f.files = append(f.files, File{path, info.Size()})
		case !errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != unsearchable:
			failed, unsearchable = append(failed, err), filepath.Dir(path)
		}
		return nil
	})
	return failed
}

// isRead reports whether others read a directory.
func (f *finder) isRead(directory string) bool {
	is, asked := f.read[directory]
	if !asked {
		is = f.reads(directory)
		f.read[directory] = is
	}
	return is
}

// withoutRepeated drops repeated files, which several paths may name in several ways.
func withoutRepeated(files []File) []File {
	here, _ := os.Getwd() // once, as there may be 100,000 files
	seen := make(map[string]bool, len(files))
	return slices.DeleteFunc(files, func(f File) bool {
		name := filepath.Clean(f.Path)
		if f.Path != Stdin && !filepath.IsAbs(name) {
			name = filepath.Join(here, name)
		}
		repeated := seen[name]
		seen[name] = true
		return repeated
	})
}

// isDescriptor reports whether a path names an open file of this process, which may be a pipe.
func isDescriptor(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, descriptors)
}

// partialSuffix is that of the names of files that are being written.
const partialSuffix = ".partial"

func isPartial(path string) bool { return strings.HasSuffix(path, partialSuffix) }
