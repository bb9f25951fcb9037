// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"fmt"
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
	// Modified is when the file was last written, in nanoseconds since the epoch, 0 for standard input.
	Modified int64
}

// Find lists the files that paths name, each once. A directory stands for the regular files
// below it, sorted by name, apart from hidden files. Paths that cannot be read, and
// devices and named pipes, are in failed.
func Find(paths []string) (files []File, failed []error) {
	return FindOthers(paths, func(string) bool { return false })
}

// FindOthers is Find without the directories that others read: it calls reads with each, and leaves those out for which that is true.
func FindOthers(paths []string, reads func(directory string) bool) (files []File, failed []error) {
	for _, path := range paths {
		if path == Stdin {
			files = append(files, File{Path: Stdin})
			continue
		}
		info, err := os.Stat(path) // also of a link or a file with any name
		switch {
		case err != nil:
			failed = append(failed, err)
		case info.IsDir():
			files, failed = appendBelow(files, failed, path, paths, reads)
		case !info.Mode().IsRegular() && !isDescriptor(path):
			failed = append(failed, &fs.PathError{Op: "open", Path: path, Err: errNotRegular})
		default:
			files = append(files, File{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano()})
		}
	}
	return withoutRenamed(files), failed
}

// appendBelow appends the files below a directory. Hidden files count if they are named.
func appendBelow(files []File, failed []error, directory string, named []string, reads func(directory string) bool) ([]File, []error) {
	if reads(directory) {
		return files, failed
	}
	root := strings.TrimSuffix(directory, string(filepath.Separator)) + string(filepath.Separator) // so that a link is followed
	entries, err := listDirectory(root, named)
	if err != nil {
		failed = append(failed, err)
	}
	for _, e := range entries {
		if e.info == nil {
			files, failed = appendBelow(files, failed, e.path, named, reads)
		} else {
			files = append(files, File{Path: e.path, Size: e.info.Size(), Modified: e.info.ModTime().UnixNano()})
		}
	}
	return files, failed
}

// entry is a file or a subdirectory.
type entry struct {
	path string
	info fs.FileInfo // nil for a subdirectory
}

// listDirectory returns the files and subdirectories of a directory, by name. What was in it when it was called and is not removed is
// among them, under the name that it had or has. So is the file that replaces another one: it has its name before the other is removed,
// and the directory is listed again if that happens meanwhile.
func listDirectory(root string, named []string) (entries []entry, err error) {
	const most = 10
	var gone string
	for range most {
		if entries, gone, err = tryDirectory(root, named); gone == "" {
			if errors.Is(err, fs.ErrNotExist) { // it has just been removed
				err = nil
			}
			return entries, err
		}
	}
	return entries, &fs.PathError{Op: "list", Path: root, Err: fmt.Errorf("files are removed while it is listed, such as %s: some may be missing", filepath.Base(gone))}
}

// tryDirectory returns a file that was removed before it was looked at as gone.
func tryDirectory(root string, named []string) (entries []entry, gone string, err error) {
	listed, err := readTwice(root)
	for _, e := range listed {
		path := filepath.Join(root, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), ".") && !slices.Contains(named, path):
		case e.IsDir():
			entries = append(entries, entry{path, nil})
		case e.Type().IsRegular():
			info, infoErr := e.Info()
			if errors.Is(infoErr, fs.ErrNotExist) && isPartial(path) { // it has just been closed
				path = strings.TrimSuffix(path, partialSuffix)
				info, infoErr = os.Lstat(path)
			}
			switch {
			case infoErr == nil:
				entries = append(entries, entry{path, info})
			case !errors.Is(infoErr, fs.ErrNotExist):
				err = infoErr
			default:
				gone = path
			}
		}
	}
	return entries, gone, err
}

// readTwice returns the entries of a directory, by name: those of two successive lists. One that lasts while a file is renamed may have
// neither of its names, but the next one has the new name.
func readTwice(directory string) ([]fs.DirEntry, error) {
	first, err := os.ReadDir(directory)
	if err != nil {
		return first, err
	}
	second, err := os.ReadDir(directory)
	all := append(second, first...)
	slices.SortStableFunc(all, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(all, func(a, b fs.DirEntry) bool { return a.Name() == b.Name() }), err
}

// withoutRenamed drops repeated files, which several paths may name in several ways, and incomplete files
// that were closed, and so got their final name, while the directory was listed.
func withoutRenamed(files []File) []File {
	here, _ := os.Getwd() // once, as there may be 100,000 files
	nameOf := func(path string) string {
		if path == Stdin || filepath.IsAbs(path) {
			return filepath.Clean(path)
		}
		return filepath.Join(here, path)
	}
	seen := make(map[string]bool, len(files))
	files = slices.DeleteFunc(files, func(f File) bool {
		name := nameOf(f.Path)
		repeated := seen[name]
		seen[name] = true
		return repeated
	})
	return slices.DeleteFunc(files, func(f File) bool {
		return isPartial(f.Path) && seen[strings.TrimSuffix(nameOf(f.Path), partialSuffix)]
	})
}

// isDescriptor reports whether a path names an open file of this process, which may be a pipe.
func isDescriptor(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, descriptors)
}

// partialSuffix is that of the names of files that are being written.
const partialSuffix = ".partial"

func isPartial(path string) bool { return strings.HasSuffix(path, partialSuffix) }
