// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// finder finds the files that match a configuration.
type finder struct {
	include []*glob
	exclude []string     // absolute, with slashes
	stored  *storeFinder // nil without a directory
	logger  *zap.Logger
}

// glob is a glob in two parts.
type glob struct {
	base    string // absolute
	pattern string // relative to base, with slashes
	failing bool   // a directory could not be listed
}

func newFinder(config Config, logger *zap.Logger) *finder {
	f := &finder{stored: newStoreFinder(config.Directory), logger: logger}
	for i, text := range slices.Concat(config.Include, config.Exclude) {
		path, err := filepath.Abs(filepath.FromSlash(text))
		if err != nil { // there is no working directory, which the first search says
			path = text
		}
		path = filepath.ToSlash(path)
		if i >= len(config.Include) {
			f.exclude = append(f.exclude, path)
			continue
		}
		base, pattern := doublestar.SplitPattern(path)
		f.include = append(f.include, &glob{base: filepath.FromSlash(base), pattern: pattern})
	}
	return f
}

// find returns the regular files that match, each once, and whether all directories could be
// listed. It logs once of each glob that a directory cannot be listed, until it can.
func (f *finder) find() (files []*File, complete bool) {
	seen := map[string]bool{}
	complete = true
	if f.stored != nil {
		found, err := f.stored.find()
		for _, file := range found {
			seen[file.Path] = true
		}
		files, complete = found, err == nil
		if err != nil && !f.stored.failing {
			f.logger.Warn("Cannot list directory; will retry", zap.String("path", f.stored.directory), zap.Error(err))
		}
		f.stored.failing = err != nil
	}
	for _, g := range f.include {
		found, err := f.findIn(g, seen)
		files = append(files, found...)
		complete = complete && err == nil
		if err != nil && !g.failing {
			f.logger.Warn("Cannot list directory; will retry", zap.String("path", g.base), zap.Error(err))
		}
		g.failing = err != nil
	}
	return files, complete
}

// findIn returns the files of a glob that are not in seen, and adds them to it.
func (f *finder) findIn(g *glob, seen map[string]bool) (files []*File, err error) {
	root, err := os.OpenRoot(g.base)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	matches, err := g.list()
	for _, relative := range matches {
		path := filepath.Join(g.base, filepath.FromSlash(relative))
		if seen[path] || hasSkippedName(path) || f.excluded(path) || f.stored.owns(path) {
			continue
		}
		// Through root, so that no link leads out of it.
		info, statErr := root.Stat(filepath.FromSlash(relative))
		if mayExist(statErr) {
			err = cmp.Or(err, statErr)
		}
		if statErr != nil || !info.Mode().IsRegular() {
			continue
		}
		seen[path] = true
		files = append(files, &File{
			Path: path, Relative: filepath.FromSlash(relative), Size: info.Size(), Modified: info.ModTime(), base: g.base, version: versionOf(info),
		})
	}
	return files, err
}

// mayExist reports whether the file of a failed Stat may be there: if its directory cannot be searched, too many
// files are open, or the disk fails. A link out of the root, in a circle, or below a file leads to none.
func mayExist(err error) bool {
	errno, isSystem := errors.AsType[syscall.Errno](err)
	return isSystem && !errors.Is(err, fs.ErrNotExist) && errno != syscall.ELOOP && errno != syscall.ENOTDIR
}

// list returns the matches below base, and the first error. After an error it runs the glob
// again: doublestar either stops at the first error, or lists the rest and returns no error.
// Links to directories are not followed, since they may form cycles.
func (g *glob) list() ([]string, error) {
	// Not with the FS of a root, which holds the state of each entry.
	entries := os.DirFS(g.base)
	options := []doublestar.GlobOption{doublestar.WithNoFollow(), doublestar.WithNoHidden()}
	matches, err := doublestar.Glob(entries, g.pattern, append(options, doublestar.WithFailOnIOErrors())...)
	if err == nil {
		return matches, nil
	}
	matches, globErr := doublestar.Glob(entries, g.pattern, options...)
	return matches, cmp.Or(globErr, err)
}

func (f *finder) excluded(path string) bool {
	return slices.ContainsFunc(f.exclude, func(pattern string) bool {
		return doublestar.MatchUnvalidated(pattern, filepath.ToSlash(path))
	})
}

// MayRead reports whether a file with this path, in which * is a directory of any name, is in the directory or matches the globs. Links
// to the directories of path and before the first wildcard of a glob are followed.
func (c *Config) MayRead(path string) bool {
	f, resolved := newFinder(*c, nil), config.ResolvePath(path)
	if f.stored != nil && strings.HasPrefix(resolved, config.ResolvePath(f.stored.directory)+string(filepath.Separator)) {
		return true
	}
	if f.excluded(path) || f.excluded(resolved) {
		return false
	}
	return slices.ContainsFunc(f.include, func(g *glob) bool {
		return matches(segments(filepath.Join(config.ResolvePath(g.base), g.pattern)), segments(resolved))
	})
}

func segments(path string) []string { return strings.Split(filepath.ToSlash(path), "/") }

// matches reports whether the segments of a glob match those of a path, in which * matches all.
func matches(glob, path []string) bool {
	switch {
	case len(glob) > 0 && glob[0] == "**":
		return matches(glob[1:], path) || len(path) > 0 && matches(glob, path[1:])
	case len(glob) == 0 || len(path) == 0:
		return len(glob) == len(path)
	}
	return (path[0] == "*" || doublestar.MatchUnvalidated(glob[0], path[0])) && matches(glob[1:], path[1:])
}
