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

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
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
	// Index: there is an index beside it.
	Index bool
	// Object and IndexObject are the file and its index in an object store, nil for files of the operating system.
	Object, IndexObject Object
}

// Find lists the files that paths name, each once. A directory stands for the regular files
// below it, sorted by name, apart from hidden files. Indexes are left out. Paths that cannot be read, and
// devices and named pipes, are in failed.
func Find(paths []string) (files []File, failed []error) {
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
			files, failed = appendBelow(files, failed, path, paths)
		case !info.Mode().IsRegular() && !isDescriptor(path):
			failed = append(failed, &fs.PathError{Op: "open", Path: path, Err: errNotRegular})
		case !strings.HasSuffix(path, recordfile.IndexSuffix): // as a pattern of the shell may name one
			index, err := os.Lstat(path + recordfile.IndexSuffix)
			files = append(files, File{
				Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano(), Index: err == nil && index.Mode().IsRegular(),
			})
		}
	}
	return withoutReplaced(withoutRenamed(files)), failed
}

// appendBelow appends the files below a directory. Hidden files count if they are named.
func appendBelow(files []File, failed []error, directory string, named []string) ([]File, []error) {
	root := directory + string(filepath.Separator)                                     // so that a link is followed
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error { // the function returns no error
		of, isIndex := strings.CutSuffix(path, recordfile.IndexSuffix)
		switch {
		case err != nil:
			failed = append(failed, err)
		case path == root:
		case strings.HasPrefix(entry.Name(), ".") && !slices.Contains(named, path):
			if entry.IsDir() {
				return fs.SkipDir
			}
		case !entry.Type().IsRegular():
		case isIndex:
			// Entries are sorted, so that the file was the one before.
			if n := len(files); n > 0 && files[n-1].Path == of {
				files[n-1].Index = true
			}
		default:
			info, err := entry.Info()
			if errors.Is(err, fs.ErrNotExist) && isPartial(path) { // it has just been closed
				path = strings.TrimSuffix(path, recordfile.PartialSuffix)
				info, err = os.Lstat(path)
			}
			switch {
			case err == nil:
				files = append(files, File{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano()})
			case !errors.Is(err, fs.ErrNotExist): // else it has just been removed
				failed = append(failed, err)
			}
		}
		return nil
	})
	return files, failed
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
		return isPartial(f.Path) && seen[strings.TrimSuffix(nameOf(f.Path), recordfile.PartialSuffix)]
	})
}

// isDescriptor reports whether a path names an open file of this process, which may be a pipe.
func isDescriptor(path string) bool {
	return path == "/dev/stdin" || strings.HasPrefix(path, descriptors)
}

func isPartial(path string) bool { return strings.HasSuffix(path, recordfile.PartialSuffix) }
