// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// Reader finds and reads files in buckets. It is safe for concurrent use.
type Reader struct {
	stats *archive.Stats
	cache *cache

	mu      sync.Mutex
	buckets map[Location]*bucket
}

// NewReader returns a Reader whose cache takes memory bytes, and which counts requests and bytes in stats.
func NewReader(memory int64, stats *archive.Stats) *Reader {
	return &Reader{stats: stats, cache: newCache(memory), buckets: map[Location]*bucket{}}
}

// Close closes idle connections.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range r.buckets {
		b.close()
	}
}

// Memory returns the bytes that the cache takes.
func (r *Reader) Memory() int64 { return r.cache.memory() }

// Find is archive.Find of paths that may be URLs of objects as well. A URL stands for the objects below it.
func (r *Reader) Find(ctx context.Context, paths []string) (files []archive.File, failed []error) {
	local := make([]string, 0, len(paths))
	urls := make(map[Location]bool, len(paths))
	for _, path := range paths {
		if !IsURL(path) {
			local = append(local, path)
			continue
		}
		location, err := ParseURL(path)
		if err != nil {
			failed = append(failed, &archive.StorageError{Operation: "list", Path: scheme, Err: err})
			continue
		}
		if urls[location] {
			continue
		}
		urls[location] = true
		found, failedHere := r.find(ctx, location)
		files, failed = append(files, found...), append(failed, failedHere...)
	}
	found, failedLocal := archive.Find(local)
	return append(files, found...), append(failed, failedLocal...)
}

func (r *Reader) bucket(location Location) (*bucket, error) {
	location.Prefix = ""
	r.mu.Lock()
	defer r.mu.Unlock()
	if b := r.buckets[location]; b != nil {
		return b, nil
	}
	b, err := openBucket(location, attempts, r.stats)
	if err == nil {
		r.buckets[location] = b
	}
	return b, err
}

// find lists the objects of a directory, or the one of this name.
func (r *Reader) find(ctx context.Context, location Location) (files []archive.File, failed []error) {
	b, err := r.bucket(location)
	if err != nil {
		return nil, []error{&archive.StorageError{Operation: "list", Path: scheme + location.Bucket, Err: err}}
	}
	directory := location.directory()
	objects, failed, err := r.listFiles(ctx, b, directory)
	if err == nil && len(objects) == 0 && location.Prefix != "" {
		objects, err = r.list(ctx, b, location.Prefix)
		for key := range objects {
			if key != location.Prefix && key != location.Prefix+recordfile.IndexSuffix {
				delete(objects, key)
			}
		}
	}
	if err != nil {
		return nil, append(failed, err)
	}
	return filesOf(objects, directory), failed
}

// listFiles returns the objects below a directory that no other one replaces. failed has those of which that is not known.
func (r *Reader) listFiles(ctx context.Context, b *bucket, directory string) (objects map[string]*object, failed []error, err error) {
	const most = 3 // lists, if each time an object was removed
	for range most {
		if objects, err = r.list(ctx, b, directory); err != nil {
			return nil, nil, err
		}
		if failed, err = withoutReplaced(ctx, b, objects); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil && !archive.IsStorageError(err) {
		err = &archive.StorageError{Operation: "list", Path: b.path(directory), Err: err}
	}
	return objects, failed, err
}

// list returns the objects whose key starts with prefix, by key.
func (r *Reader) list(ctx context.Context, b *bucket, prefix string) (map[string]*object, error) {
	objects := map[string]*object{}
	for o, err := range b.list(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		o.cache = r.cache
		objects[o.key] = o
	}
	return objects, nil
}

// filesOf returns the files, in the order of a directory of the operating system: without indexes, and without those that are hidden
// below the directory.
func filesOf(objects map[string]*object, directory string) []archive.File {
	files := make([]archive.File, 0, len(objects))
	for key, o := range objects {
		name := strings.TrimPrefix(key, directory)
		if strings.HasSuffix(key, recordfile.IndexSuffix) || strings.HasSuffix(key, manifestSuffix) || strings.HasSuffix(key, "/") || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
			continue
		}
		file := archive.File{Path: o.bucket.path(key), Size: o.size, Modified: o.modified, Object: o}
		if index := objects[key+recordfile.IndexSuffix]; index != nil {
			file.Index, file.IndexObject = true, index
		}
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b archive.File) int { return comparePaths(a.Path, b.Path) })
	return files
}

// comparePaths compares element by element.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}
