// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// local is a directory.
type local struct {
	root  string
	stats *bucket.Stats // may be nil
}

func (l *local) name(f *layout.File) string { return l.path(f.Path) }
func (l *local) close()                     {}
func (l *local) memory() int64              { return 0 }

func (l *local) path(name string) string { return filepath.Join(l.root, filepath.FromSlash(name)) }

// listing lists a directory.
type listing struct {
	*local

	ctx     context.Context
	since   time.Time
	accepts func(string) bool
	selects func(*layout.File) bool
	known   map[string]layout.File // by path
	files   []layout.File
	err     error // of some directories and files
}

func (l *local) list(ctx context.Context, since time.Time, accepts func(string) bool, selects func(*layout.File) bool, known []layout.File) ([]layout.File, error) {
	w := &listing{local: l, ctx: ctx, since: since, accepts: accepts, selects: selects, known: make(map[string]layout.File, len(known))}
	for _, f := range known {
		w.known[f.Path] = f
	}
	w.directory("", nil)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return w.files, w.err
}

// directory lists the directories in one before the files in it: a file that is compacted in between is in the list as itself or as a part
// of another one.
func (w *listing) directory(name string, date []string) {
	if w.ctx.Err() != nil {
		return
	}
	entries := w.read(name)
	for _, entry := range entries {
		if !entry.IsDir() || !layout.IsChild(len(date), entry.Name()) {
			continue
		}
		child := path.Join(name, entry.Name())
		switch {
		case len(date) == 0 && !layout.IsYear(entry.Name()):
			if w.accepts(child) {
				w.directory(child, nil)
			}
		case name == "" && !w.accepts(""):
		default:
			if inner := append(slices.Clone(date), entry.Name()); layout.EndOf(inner).After(w.since) {
				w.directory(child, inner)
			}
		}
	}
	switch len(date) {
	case 0, 1: // have no files
		return
	case 2, 3:
		entries = w.read(name)
	}
	dir, ok := layout.ParseDir(name)
	for _, entry := range entries {
		if ok && entry.Type().IsRegular() {
			w.file(&dir, entry)
		}
	}
}

func (w *listing) read(name string) []os.DirEntry {
	entries, err := os.ReadDir(w.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.err = errors.Join(w.err, err)
	}
	return entries
}

func (w *listing) file(dir *layout.FileDir, entry os.DirEntry) {
	if known, found := w.known[dir.Join(entry.Name())]; found && !known.Partial { // it never changes
		w.files = append(w.files, known)
		return
	}
	f, ok := dir.Parse(entry.Name())
	if !ok || !f.Partition.Add(f.Level.Span()).After(w.since) || !w.selects(&f) {
		return
	}
	info, err := entry.Info()
	switch {
	case errors.Is(err, fs.ErrNotExist): // it was closed, compacted or removed
		if f.Partial {
			w.files = append(w.files, f)
		}
	case err != nil:
		w.err = errors.Join(w.err, err)
	default:
		f.Size = info.Size()
		w.files = append(w.files, f)
	}
}

func (l *local) open(_ context.Context, f *layout.File) (content, error) {
	file, err := regularfile.Open(l.path(f.Path))
	if errors.Is(err, fs.ErrNotExist) && f.Partial {
		file, err = l.openClosed(f)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", l.name(f), ErrGone)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !f.Partial && info.Size() != f.Size {
		err = fmt.Errorf("%s: %w", l.name(f), ErrGone)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &localContent{file, info, l.stats}, nil
}

// openClosed opens a file that was closed after it was listed.
func (l *local) openClosed(f *layout.File) (*os.File, error) {
	entries, err := os.ReadDir(l.path(f.Dir()))
	for _, entry := range entries {
		if closed, ok := layout.ParsePath(path.Join(f.Dir(), entry.Name())); ok && closed.Stem == f.Stem {
			return regularfile.Open(l.path(closed.Path))
		}
	}
	if err != nil {
		return nil, err
	}
	return nil, fs.ErrNotExist
}

type localContent struct {
	*os.File

	info  fs.FileInfo
	stats *bucket.Stats
}

func (c *localContent) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.File.ReadAt(p, offset)
	if c.stats != nil {
		c.stats.Bytes.Add(int64(n))
	}
	return n, err
}

func (c *localContent) Info() fs.FileInfo                       { return c.info }
func (c *localContent) Size() int64                             { return c.info.Size() }
func (c *localContent) Fetch(context.Context, []segment.Record) {}
