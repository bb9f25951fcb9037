// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package store owns files of profiles: it writes, compacts, uploads and finds them. No other package lists their directories.
//
// # Layout
//
//	service.name=checkout/2026/11/28/14/<created>-<writer>.<start>-<end>.otlp.pb.zst    written
//	service.name=checkout/2026/11/28/14_<directory>.<start>-<end>.otlp.pb.zst           an hour, compacted
//	service.name=checkout/2026/11/28_<directory>.<start>-<end>.otlp.pb.zst              a day, compacted
//
// A directory with "=" is a group, the others are its hours in UTC: its partitions. A record goes to the later of the clock's hour and the hour in
// which it ends, so that the records of a time are in the partitions since then. A file that is being written has the name
// <created>-<writer>.otlp.pb.zst.partial. When it is closed, its records are joined into few, in a file that replaces it, and it is renamed once. The format of files is that of package segment, and what an index says about
// records that of package contents.
//
// # Which files count
//
// The index of a compacted file names what it was made of, by name and size. Exactly those files do not count, at any level; every other one
// does, and goes into the next level. So the rename that gives a compacted file its name replaces its inputs at once. They are removed
// before the compacted file itself may be an input, expire, or be replaced in a bucket.
//
// A Writer has a shared lock of the directories in which it has open files, and does not write to hours that were compacted. The
// Compactor and recovery take the lock alone. On file systems without flock, only one process may use a directory.
//
// A reader lists each directory before the compacted files beside it, twice, and unites the lists. A file that is gone when it is opened has
// been compacted or has expired: the reader lists again. So nothing is missing, and nothing counts twice.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// ReadOptions of a Store.
type ReadOptions struct {
	// MaxRecord bounds the size in bytes of a record, and MaxDecoded the memory that a record takes when its index entry is made. Both are
	// at least segment.MaxRecordMemory.
	MaxRecord, MaxDecoded int64
	// Cache bounds the memory in bytes of indexes, and of blocks of a bucket.
	Cache int64
	// Stats counts requests to buckets; it may be nil.
	Stats *bucket.Stats
	// Inside are directories of groups, years, months, days and hours, by their paths below a directory: Live and Since return only segments
	// of them, and compacted ones of their time, which have the records of what was in them. None are all.
	Inside []string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Store reads the files of a directory or of a prefix of a bucket. It is safe for concurrent use.
type Store struct {
	options ReadOptions
	source  source
	inside  parts
	readers segment.Readers

	scanning sync.Mutex // of files that are being written

	mu      sync.Mutex
	indexes *simplelru.LRU[string, *cached] // by path
	size    int64                           // of indexes, in bytes
}

// source is where files are.
type source interface {
	// list returns the files of partitions that end after since, in groups that are accepted, which selects accepts. An error may
	// come with the files that were found. known are those of a list before.
	list(ctx context.Context, since time.Time, accepts func(group string) bool, selects func(*layout.File) bool, known []layout.File) ([]layout.File, error)
	// open opens a file. The error wraps ErrGone if there is none any more.
	open(ctx context.Context, f *layout.File) (content, error)
	// name names a file for people.
	name(f *layout.File) string
	// memory is how many bytes it caches.
	memory() int64
	close()
}

// content is an open file.
type content interface {
	io.ReaderAt
	io.Closer
	Size() int64
	// Info is the file of a directory, nil in a bucket.
	Info() fs.FileInfo
	// Fetch reads parts ahead, several in one request if they are close to each other.
	Fetch(ctx context.Context, parts []segment.Record)
}

// Open opens a directory, or a prefix such as s3://bucket/prefix, for reading. It does not need to exist.
func Open(location string, options ReadOptions) (*Store, error) {
	if !bucket.IsURL(location) {
		absolute, err := filepath.Abs(location)
		return newStore(&local{root: absolute, stats: options.Stats}, options), err
	}
	at, err := bucket.ParseURL(location)
	if err != nil {
		return nil, err
	}
	if options.Stats == nil {
		options.Stats = &bucket.Stats{}
	}
	opened, err := bucket.Open(at, options.Cache/2, options.Stats)
	if err != nil {
		return nil, err
	}
	return newStore(&remote{bucket: opened, prefix: at.Directory()}, options), nil
}

func newStore(from source, options ReadOptions) *Store {
	if options.Now == nil {
		options.Now = time.Now
	}
	options.MaxRecord = max(options.MaxRecord, segment.MaxRecordMemory)
	options.MaxDecoded = max(options.MaxDecoded, segment.MaxRecordMemory)
	s := &Store{options: options, source: from, inside: partsOf(options.Inside)}
	s.indexes, _ = simplelru.NewLRU(math.MaxInt, func(_ string, c *cached) { s.size -= c.size }) // an error would be of the size
	return s
}

// Close closes idle connections.
func (s *Store) Close() { s.source.close() }

// Segment is a file that counts.
type Segment struct {
	layout.File

	store *Store
}

// Name names the file for people.
func (s *Segment) Name() string { return s.store.source.name(&s.File) }

// Index says what is in a segment.
type Index struct {
	*contents.Tables

	Records []segment.Record
	// Damage is what could not be read, if the index had to be made.
	Damage []*segment.DamageError

	of fs.FileInfo // the file, if it was being written: another one takes its name when it is closed
}

// Entry describes a record.
func (x *Index) Entry(i int) (*contents.Entry, error) { return x.Tables.Entry(x.Records[i].Entry) }

// cached is an index, or what is needed to go on making the index of a file that is being written.
type cached struct {
	etag  string
	bytes int64 // of the file
	index *Index
	scan  *scan
	size  int64 // memory in bytes
}

// Index returns the index of the segment, which is made if the file has none. The error wraps ErrGone if the file is not there any more:
// then call Live again.
func (s *Segment) Index(ctx context.Context) (*Index, error) {
	known := s.store.cached(s.Path)
	if known != nil && !s.Partial && known.index != nil && known.bytes == s.Size && known.etag == s.ETag {
		return known.index, nil
	}
	file, err := s.store.source.open(ctx, &s.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	size := file.Size()
	if s.Format == segment.Proto {
		stored, err := s.stored(file, size)
		if err == nil {
			stored.of = s.identity(file)
			s.store.keep(s.Path, &cached{etag: s.ETag, bytes: size, index: stored})
			return stored, nil
		}
		if !errors.Is(err, segment.ErrNoIndex) {
			return nil, s.fail(err)
		}
	}
	made, err := s.made(file, size, known)
	if err != nil {
		return nil, s.fail(err)
	}
	s.store.keep(s.Path, made)
	return made.index, nil
}

// identity is that of a file that may be replaced.
func (s *Segment) identity(file content) fs.FileInfo {
	if !s.Partial {
		return nil
	}
	return file.Info()
}

func (s *Segment) fail(err error) error { return fmt.Errorf("%s: %w", s.Name(), err) }

// stored reads the index at the end of the file.
func (s *Segment) stored(file content, size int64) (*Index, error) {
	x, _, err := segment.ReadIndex(file, size, maxIndex)
	if err != nil {
		return nil, err
	}
	tables, err := contents.ParseTables(x.Tables)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", segment.ErrNoIndex, err)
	}
	return &Index{Tables: tables, Records: x.Records}, nil
}

// made makes the index. It goes on with one of a shorter file, if that was the same one.
func (s *Segment) made(file content, size int64, known *cached) (*cached, error) {
	s.store.scanning.Lock()
	defer s.store.scanning.Unlock()
	sc := newScan(s.Format, s.store.options.Now())
	if known != nil && known.scan != nil && known.scan.isOf(file) {
		sc = known.scan
	}
	if err := sc.readTo(file, size, s.store.options.MaxRecord, s.store.options.MaxDecoded); err != nil {
		return nil, err
	}
	tables, err := contents.ParseTables(sc.builder.Tables())
	if err != nil {
		return nil, err
	}
	made := &cached{etag: s.ETag, bytes: size, index: &Index{Tables: tables, Records: sc.records, Damage: sc.damage}}
	made.index.of = s.identity(file)
	if !s.Partial { // a part of a record at the end is one that is being written
		made.index.Damage = append(made.index.Damage[:len(made.index.Damage):len(made.index.Damage)], sc.tail...)
	} else if sc.remember(file) {
		made.scan = sc
	}
	return made, nil
}

func (s *Store) cached(path string) *cached {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, _ := s.indexes.Get(path)
	return known
}

// keep keeps an index as long as there is room.
func (s *Store) keep(path string, c *cached) {
	const record, key = 64, 512 // bytes of memory, about
	c.size = int64(len(path)) + key*int64(1+len(c.index.Keys)) + c.index.Labels.Size()
	for i := range c.index.Records {
		c.size += record + int64(len(c.index.Records[i].Entry))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes.Remove(path)
	s.indexes.Add(path, c)
	s.size += c.size
	for s.size > s.options.Cache/2 && s.indexes.Len() > 0 {
		s.indexes.RemoveOldest()
	}
}

// Memory returns the bytes that indexes and blocks take.
func (s *Store) Memory() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size + s.source.memory()
}

// Fetch reads records of a segment in a bucket ahead, so that Records needs no request for them, or has the error.
func (s *Segment) Fetch(ctx context.Context, records []segment.Record) {
	if _, isRemote := s.store.source.(*remote); !isRemote {
		return
	}
	if file, err := s.store.source.open(ctx, &s.File); err == nil {
		file.Fetch(ctx, records)
		_ = file.Close() // nothing was written
	}
}

// Records reads records of an index of the segment, in order. Their data is valid until the next one. Damage is an error of one record,
// after which others follow; any other error ends it. It wraps ErrGone if the file is not there any more, or its records were joined since.
func (s *Segment) Records(ctx context.Context, of *Index, records []segment.Record) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if len(records) == 0 {
			return
		}
		file, err := s.store.source.open(ctx, &s.File)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = file.Close() }()
		if s.Partial && !os.SameFile(of.of, file.Info()) {
			yield(nil, s.fail(ErrGone))
			return
		}
		file.Fetch(ctx, records)
		reader := s.store.readers.New(file, records[0].Offset, file.Size(), s.Format, int(min(s.store.options.MaxRecord, segment.MaxRecordSize)))
		defer reader.Close()
		for _, r := range records {
			if ctx.Err() != nil {
				yield(nil, context.Cause(ctx))
				return
			}
			data, err := reader.Record(r)
			if err != nil {
				err = s.fail(err)
			}
			_, isDamage := errors.AsType[*segment.DamageError](err)
			if !yield(data, err) || err != nil && !isDamage {
				return
			}
		}
	}
}
