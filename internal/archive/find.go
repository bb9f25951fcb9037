// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
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
	named := make(map[string]bool, len(paths))
	for _, path := range paths {
		named[path] = true
	}
	for _, path := range paths {
		if path == Stdin {
			files = append(files, File{Path: Stdin})
			continue
		}
		_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				failed = append(failed, err)
				return nil
			}
			hidden := strings.HasPrefix(entry.Name(), ".")
			switch {
			case entry.IsDir() && hidden && !named[path]:
				return fs.SkipDir
			case entry.IsDir():
			case named[path] && isIndex(entry.Name()): // as a pattern of the shell may do
			case named[path]:
				// Also a link, a pipe or a file with any name.
				info, err := os.Stat(path)
				if err != nil {
					failed = append(failed, err)
					return nil
				}
				files = append(files, File{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano(), Index: hasIndex(path)})
			case !entry.Type().IsRegular() || hidden:
			case strings.HasSuffix(path, segment.IndexSuffix):
				// Entries are sorted, so that the file was the one before.
				if n := len(files); n > 0 && len(path) == len(files[n-1].Path)+len(segment.IndexSuffix) && strings.HasPrefix(path, files[n-1].Path) {
					files[n-1].Index = true
				}
			default:
				if info, err := entry.Info(); err == nil { // else it has just been removed
					files = append(files, File{Path: path, Size: info.Size(), Modified: info.ModTime().UnixNano()})
				}
			}
			return nil
		})
	}
	return withoutRenamed(files), failed
}

// isIndex reports whether a name is that of the index of one of the exporter's files.
func isIndex(name string) bool {
	of, found := strings.CutSuffix(name, segment.IndexSuffix)
	_, ours := segment.ParseName(of)
	return found && ours
}

// hasIndex reports whether there is an index beside a file.
func hasIndex(path string) bool {
	info, err := os.Lstat(path + segment.IndexSuffix)
	return err == nil && info.Mode().IsRegular()
}

// withoutRenamed drops repeated files, and incomplete files that were closed, and so got
// their final name, while the directory was listed.
func withoutRenamed(files []File) []File {
	closed, seen := make(map[string]bool, len(files)), make(map[string]bool, len(files))
	for _, f := range files {
		closed[f.Path] = !isPartial(f.Path)
	}
	return slices.DeleteFunc(files, func(f File) bool {
		repeated := seen[f.Path]
		seen[f.Path] = true
		return repeated || isPartial(f.Path) && closed[closedPath(f.Path)]
	})
}

const partialSuffix = ".partial"

func isPartial(path string) bool { return strings.HasSuffix(path, partialSuffix) }

// closedPath is the path that an incomplete file gets when it is closed.
func closedPath(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, partialSuffix), ".bare")
}
