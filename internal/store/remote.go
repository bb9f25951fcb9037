// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// remote is a prefix of a bucket.
type remote struct {
	bucket *bucket.Bucket
	prefix string // "" or ends in a slash
}

func (r *remote) name(f *layout.File) string { return r.bucket.Path(r.prefix + f.Path) }
func (r *remote) close()                     { r.bucket.Close() }
func (r *remote) memory() int64              { return r.bucket.Memory() }

// OfBucket returns the Store of a prefix of a bucket, which is "" or ends in a slash. Its owner closes the bucket. It has no cache of indexes.
func OfBucket(b *bucket.Bucket, prefix string) *Store {
	return newStore(&remote{bucket: b, prefix: prefix}, ReadOptions{})
}

// listers is how many groups are listed at once.
const listers = 16

// list lists the years of each group from the hour of since on. In the order of keys, a directory is before the compacted files beside it.
func (r *remote) list(ctx context.Context, since time.Time, accepts func(string) bool, selects func(*layout.File) bool, _ []layout.File) ([]layout.File, error) {
	var mu sync.Mutex
	var files []layout.File
	listYear := func(ctx context.Context, group, year string) error {
		prefix := r.prefix + path.Join(group, year) + "/"
		after := ""
		if since.Year() > 0 {
			after = r.prefix + path.Join(group, since.UTC().Format(layout.HourPath))
		}
		if !strings.HasPrefix(after, prefix) {
			after = ""
		}
		for o, err := range r.bucket.List(ctx, prefix, after) {
			if err != nil {
				return err
			}
			f, ok := layout.ParsePath(strings.TrimPrefix(o.Key, r.prefix))
			if !ok || f.Partial || !f.Partition.Add(f.Level.Span()).After(since) || !selects(&f) {
				continue
			}
			f.Size, f.ETag = o.Size, o.ETag
			mu.Lock()
			files = append(files, f)
			mu.Unlock()
		}
		return nil
	}
	years, err := r.years(ctx, since, accepts)
	if err != nil {
		return nil, err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(listers)
	for _, y := range years {
		all.Go(func() error { return listYear(ctx, y.group, y.year) })
	}
	return files, all.Wait()
}

type groupYear struct{ group, year string }

// years returns the years of all groups that end after since.
func (r *remote) years(ctx context.Context, since time.Time, accepts func(string) bool) (years []groupYear, err error) {
	var mu sync.Mutex
	groups := []string{""}
	for len(groups) > 0 {
		var next []string
		level, ctx := errgroup.WithContext(ctx)
		level.SetLimit(listers)
		for _, group := range groups {
			level.Go(func() error {
				names, err := r.bucket.Directories(ctx, r.prefix+withSlash(group))
				mu.Lock()
				defer mu.Unlock()
				for _, name := range names {
					child := path.Join(group, name)
					switch {
					case layout.IsYear(name):
						if (group != "" || accepts("")) && layout.EndOf([]string{name}).After(since) {
							years = append(years, groupYear{group, name})
						}
					case layout.IsGroupDir(name) && accepts(child):
						next = append(next, child)
					}
				}
				return err
			})
		}
		if err := level.Wait(); err != nil {
			return nil, err
		}
		groups = next
	}
	return years, nil
}

func withSlash(group string) string {
	if group == "" {
		return ""
	}
	return group + "/"
}

func (r *remote) open(ctx context.Context, f *layout.File) (content, error) {
	o := r.bucket.Object(r.prefix+f.Path, f.Size, f.ETag)
	return &remoteContent{object: o, reader: o.Reader(ctx, f.Size), name: r.name(f)}, nil
}

type remoteContent struct {
	object *bucket.Object
	reader io.ReaderAt
	name   string
}

func (c *remoteContent) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.reader.ReadAt(p, offset)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w", c.name, ErrGone)
	}
	return n, err
}

func (c *remoteContent) Close() error      { return nil }
func (c *remoteContent) Info() fs.FileInfo { return nil }
func (c *remoteContent) Size() int64       { return c.object.Size }

func (c *remoteContent) Fetch(ctx context.Context, parts []segment.Record) {
	ranges := make([]bucket.Range, len(parts))
	for i, part := range parts {
		ranges[i] = bucket.Range{Start: part.Offset, End: part.Offset + part.Length}
	}
	c.object.Fetch(ctx, ranges)
}

// Inputs reads what a compacted file was made of. The error wraps ErrGone if the file is not there any more.
func (s *Store) Inputs(ctx context.Context, f *layout.File) ([]segment.Input, error) {
	file, err := s.source.open(ctx, f)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return readInputs(file, f)
}
