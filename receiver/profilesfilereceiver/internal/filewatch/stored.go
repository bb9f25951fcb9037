// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// removeEmptyEvery is how often empty directories are removed.
const removeEmptyEvery = time.Minute

// storeFinder finds the files of a directory that a profiles_file exporter writes.
type storeFinder struct {
	directory string // absolute
	claim     *store.Claim
	removed   time.Time // when empty directories were removed last
	failing   bool      // the directory could not be listed
}

func newStoreFinder(directory string) *storeFinder {
	if directory == "" {
		return nil
	}
	absolute, err := filepath.Abs(directory)
	if err != nil { // there is no working directory, which the first search says
		absolute = directory
	}
	return &storeFinder{directory: absolute}
}

// find returns the closed files that count. There are none as long as there is no directory. An error may come with them.
func (s *storeFinder) find() (files []*File, err error) {
	if err := s.start(); err != nil || s.claim == nil {
		return nil, err
	}
	root, err := os.OpenRoot(s.directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	from, err := store.Open(s.directory, store.ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer from.Close()
	stored, _, err := from.Files(context.Background())
	for i := range stored {
		relative := filepath.FromSlash(stored[i].Path)
		info, statErr := root.Lstat(relative)
		if errors.Is(statErr, fs.ErrNotExist) { // by retention
			continue
		}
		if statErr != nil {
			err = errors.Join(err, statErr)
			continue
		}
		files = append(files, &File{
			Path: filepath.Join(s.directory, relative), Relative: relative, Size: info.Size(), Modified: info.ModTime(), Stored: &stored[i],
			base: s.directory, version: versionOf(info),
		})
	}
	return files, err
}

// owns reports whether a path is that of a file of the exporter, which counts or not.
func (s *storeFinder) owns(path string) bool {
	if s == nil {
		return false
	}
	relative, below := strings.CutPrefix(path, s.directory+string(filepath.Separator))
	_, is := layout.ParsePath(filepath.ToSlash(relative))
	return below && is
}

// start claims the directory as one that is sent, as soon as it exists.
func (s *storeFinder) start() (err error) {
	if s == nil || s.claim != nil {
		return nil
	}
	if root, inside := store.RootOf(s.directory); inside != "" {
		return fmt.Errorf("directory %s: is a part of the files in %s: must be that directory", s.directory, root)
	}
	s.claim, err = store.ClaimDirectory(s.directory, store.Sends)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// stop gives the directory back.
func (s *storeFinder) stop() error {
	if s == nil {
		return nil
	}
	claim := s.claim
	s.claim = nil
	return claim.Close()
}

// RemoveEmpty removes the empty directories of the directory, at most once a minute.
func (w *Watcher) RemoveEmpty() error {
	s, now := w.finder.stored, time.Now()
	if s == nil || s.claim == nil || now.Sub(s.removed) < removeEmptyEvery {
		return nil
	}
	s.removed = now
	return store.RemoveEmpty(s.directory, now)
}
