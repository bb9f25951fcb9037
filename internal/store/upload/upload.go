// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package upload uploads the closed files of a directory to a bucket, and removes what compacted ones replace there.
package upload

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v7"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
)

// Options of an Uploader. Functions may be called concurrently.
type Options struct {
	bucket.Location

	Directory string
	// Timeout is that of a request.
	Timeout time.Duration
	// MaxAge is when objects are removed, by the latest end in their names. 0 is never.
	MaxAge time.Duration

	// Parquet uploads Parquet files as well: see package lake. nil does not.
	Parquet *Parquet

	// Uploaded gets a file that the bucket has now, by its path below the directory.
	Uploaded func(path string, bytes int64)
	// Removed gets an object that is older than its MaxAge.
	Removed func(key string)
	// Waiting gets the number of files that the bucket has not.
	Waiting func(files int)
	// Failed gets an error. A *bucket.ConflictError is of one file, which is tried again later; else Run tries again after a time.
	Failed func(err error, after time.Duration)

	// Concurrency is how many files are uploaded at once, 4 if it is 0.
	Concurrency int
	// Interval is how often Run looks for closed files without a call of FileClosed, 10 s if it is 0.
	Interval time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

const (
	// expireInterval is how often old objects are removed.
	expireInterval = time.Hour
	// conflictInterval is how often the upload of a file is tried whose name another object has.
	conflictInterval = 10 * time.Minute
	// forgetAfter is how long a file has been missing when it is forgotten. What this process removes is forgotten by Forget, which
	// comes a moment after that.
	forgetAfter = time.Minute
)

// Uploader uploads the closed files of a directory to objects with their paths: a compacted file after those of lower levels. Then it removes what
// the compacted file was made of from the bucket. The directory is the queue: what is in it and not in the bucket waits, also
// after a restart.
type Uploader struct {
	options  Options
	bucket   *bucket.Bucket
	prefix   string
	files    *store.Store
	retry    *backoff.ExponentialBackOff
	closed   chan struct{}
	listed   bool
	expired  time.Time            // when old objects were removed last
	conflict map[string]time.Time // when another object of a file's name was found

	mu sync.Mutex
	// done are the files that are in the bucket, without their inputs, or are too old for it, by path, with the time of the
	// last scan that found them.
	done map[string]time.Time
}

// New returns an Uploader. It sends no request.
func New(options Options) (*Uploader, error) {
	options.Interval, options.Concurrency = cmp.Or(options.Interval, 10*time.Second), cmp.Or(options.Concurrency, 4)
	if options.Now == nil {
		options.Now = time.Now
	}
	options.Prefix = strings.Trim(options.Prefix, "/")
	var err error
	if options.Directory, err = filepath.Abs(options.Directory); err != nil {
		return nil, err
	}
	files, err := store.Open(options.Directory, store.ReadOptions{})
	if err != nil {
		return nil, err
	}
	b, err := bucket.OpenOnce(options.Location) // Run has its own retries
	if err != nil {
		return nil, err
	}
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = min(time.Second, options.Interval), time.Minute
	return &Uploader{
		options: options, bucket: b, prefix: options.Location.Directory(), files: files, retry: retry,
		closed: make(chan struct{}, 1), conflict: map[string]time.Time{}, done: map[string]time.Time{},
	}, nil
}

// Run uploads until ctx ends. It goes on after a panic of its own code.
func (u *Uploader) Run(ctx context.Context) {
	defer u.Close()
	for ctx.Err() == nil {
		delay, closed := u.options.Interval, u.closed
		if err := panics.Guarded(func() error { return u.Upload(ctx) })(); err == nil {
			u.retry.Reset()
		} else if ctx.Err() == nil {
			delay, closed = u.retry.NextBackOff(), nil
			u.options.Failed(err, delay)
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		case <-closed:
			select { // for others that are closed at the same time
			case <-ctx.Done():
			case <-time.After(min(delay, time.Second)):
			}
		}
	}
}

// Close closes idle connections.
func (u *Uploader) Close() { u.bucket.Close() }

// FileClosed makes Run look for closed files soon. It is safe for concurrent use.
func (u *Uploader) FileClosed() {
	select {
	case u.closed <- struct{}{}:
	default:
	}
}

// Waits reports whether a file is not in the bucket, or what it was made of still is, by its path below the directory. It is
// safe for concurrent use.
func (u *Uploader) Waits(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.done[path].IsZero()
}

// Forget reports whether a file waited that was removed.
func (u *Uploader) Forget(path string) (waited bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	waited = u.done[path].IsZero()
	delete(u.done, path)
	return waited
}

func (u *Uploader) setDone(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done[path] = u.options.Now()
}

func (u *Uploader) key(path string) string { return u.prefix + path }

// Upload uploads the files that wait, and removes old objects. After an error of the bucket, the rest is for the next pass; one of the
// directory does not keep other files from being uploaded.
func (u *Uploader) Upload(ctx context.Context) error {
	files, failed := u.scan(ctx)
	if !u.listed {
		if err := u.list(ctx, files); err != nil {
			return err
		}
		u.listed = true
	}
	waiting := slices.DeleteFunc(files, func(f layout.File) bool {
		if u.isOld(&f) {
			u.setDone(f.Path)
		}
		return !u.Waits(f.Path)
	})
	tables, err := u.parquetFiles()
	failed = cmp.Or(failed, err)
	left := len(waiting) + len(tables)
	u.options.Waiting(left)
	var steps [4][]func(context.Context) (uploaded bool, err error)
	for i := range waiting {
		f := &waiting[i]
		steps[f.Level] = append(steps[f.Level], func(ctx context.Context) (bool, error) { return u.upload(ctx, f) })
	}
	for i := range tables {
		f := &tables[i]
		steps[3] = append(steps[3], func(ctx context.Context) (bool, error) { return u.uploadParquet(ctx, f) })
	}
	// Compacted files must wait for those of lower levels, as they may replace these. Parquet can wait for all.
	for _, uploads := range steps {
		err := u.uploadAll(ctx, uploads, &left)
		if bucket.IsStorageError(err) {
			return err
		}
		failed = cmp.Or(failed, err)
	}
	if err := u.expire(ctx); err != nil {
		return err
	}
	return failed
}

// uploadAll uploads files at once.
func (u *Uploader) uploadAll(ctx context.Context, uploads []func(context.Context) (uploaded bool, err error), left *int) (failed error) {
	var mu sync.Mutex
	group, all := errgroup.WithContext(ctx)
	group.SetLimit(u.options.Concurrency)
	for _, upload := range uploads {
		if all.Err() != nil {
			break
		}
		group.Go(func() error {
			var uploaded bool
			err := panics.Guarded(func() (err error) { uploaded, err = upload(all); return err })()
			mu.Lock()
			defer mu.Unlock()
			switch {
			case bucket.IsStorageError(err):
				return err
			case err != nil:
				failed = cmp.Or(failed, err)
			case uploaded:
				*left--
				u.options.Waiting(*left)
			}
			return nil
		})
	}
	return cmp.Or(group.Wait(), failed)
}

// scan returns the closed files of the directory that count, the oldest first. It drops what is known of files that other processes
// have removed.
func (u *Uploader) scan(ctx context.Context) ([]layout.File, error) {
	files, all, err := u.files.Files(ctx)
	if all == nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.options.Now()
	for path, seen := range u.done {
		switch {
		case err != nil || all[path]:
			u.done[path] = now
		case now.Sub(seen).Abs() > forgetAfter:
			delete(u.done, path)
		}
	}
	return files, err
}

// list finds the files that the bucket has already. A compacted one waits if the bucket may have its inputs.
func (u *Uploader) list(ctx context.Context, files []layout.File) error {
	sizes := make(map[string]int64, len(files))
	for i := range files {
		sizes[files[i].Path] = files[i].Size
	}
	var stored []layout.File
	for o, err := range u.bucket.List(ctx, u.prefix, "") {
		if err != nil {
			return err
		}
		if f, ok := layout.ParsePath(strings.TrimPrefix(o.Key, u.prefix)); ok {
			f.Size = o.Size
			stored = append(stored, f)
		}
	}
	slices.SortFunc(stored, func(a, b layout.File) int { return cmp.Compare(a.Path, b.Path) })
	for i := range stored {
		f := &stored[i]
		// An object of another size is a conflict, which the upload finds.
		if sizes[f.Path] == f.Size && (f.Level == layout.Written || !layout.HasFileBelow(stored, f)) {
			u.setDone(f.Path)
		}
	}
	return nil
}

func (u *Uploader) isOld(f *layout.File) bool {
	return u.options.MaxAge > 0 && u.options.Now().Sub(f.Age()) > u.options.MaxAge
}

// upload uploads a file. uploaded is false if it is gone, or another object has its name.
func (u *Uploader) upload(ctx context.Context, f *layout.File) (uploaded bool, err error) {
	uploaded, err = u.put(ctx, f.Path, f.Size, func() error {
		if f.Level == layout.Day {
			return u.removeInputsOfInputs(ctx, f)
		}
		return nil
	})
	if err == nil && !uploaded {
		return false, nil
	}
	if err == nil && f.Level > layout.Written {
		var stored []layout.File
		if stored, err = u.stored(ctx, f); err == nil {
			err = u.removeInputs(ctx, u.files, f, stored)
		}
	}
	if err != nil {
		return false, err
	}
	u.setDone(f.Path)
	u.options.Uploaded(f.Path, f.Size)
	return true, nil
}

// put uploads a file after a call of prepare, unless the file is gone, or another object has had its name lately.
func (u *Uploader) put(ctx context.Context, name string, size int64, prepare func() error) (uploaded bool, err error) {
	u.mu.Lock()
	conflict := u.conflict[name]
	u.mu.Unlock()
	if u.options.Now().Sub(conflict) < conflictInterval {
		return false, nil
	}
	file, err := regularfile.Open(filepath.Join(u.options.Directory, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	if err := prepare(); err != nil {
		return false, err
	}
	err = u.bucket.Put(ctx, u.key(name), file, size, u.options.Timeout)
	if _, isConflict := errors.AsType[*bucket.ConflictError](err); isConflict {
		u.options.Failed(err, 0)
		u.mu.Lock()
		u.conflict[name] = u.options.Now()
		u.mu.Unlock()
		return false, nil
	}
	return err == nil, err
}

// stored returns the objects of lower levels of the partition of a compacted file.
func (u *Uploader) stored(ctx context.Context, f *layout.File) (files []layout.File, err error) {
	partition := f.Path[:len(f.Dir())+1+2] // the hour or day of its name
	for o, err := range u.bucket.List(ctx, u.key(partition)+"/", "") {
		if err != nil {
			return nil, err
		}
		if stored, ok := layout.ParsePath(strings.TrimPrefix(o.Key, u.prefix)); ok {
			stored.Size, stored.ETag = o.Size, o.ETag
			files = append(files, stored)
		}
	}
	return files, nil
}

type nameAndSize struct {
	path string
	size int64
}

// removeInputs removes what a file of a store was made of from the bucket, as far as it is stored there.
func (u *Uploader) removeInputs(ctx context.Context, s *store.Store, f *layout.File, stored []layout.File) error {
	if len(stored) == 0 {
		return nil
	}
	inputs, err := s.Inputs(ctx, f)
	if err != nil {
		return err
	}
	named := make(map[nameAndSize]bool, len(inputs))
	for _, input := range inputs {
		named[nameAndSize{path.Join(f.Dir(), input.Name), input.Size}] = true
	}
	for i := range stored {
		if !named[nameAndSize{stored[i].Path, stored[i].Size}] {
			continue
		}
		if err := u.bucket.Remove(ctx, u.key(stored[i].Path), u.options.Timeout); err != nil {
			return err
		}
	}
	return nil
}

// removeInputsOfInputs removes what the compacted files in the bucket that another one replaces were made of: it would count again without
// them.
func (u *Uploader) removeInputsOfInputs(ctx context.Context, f *layout.File) error {
	stored, err := u.stored(ctx, f)
	if err != nil {
		return err
	}
	there := store.OfBucket(u.bucket, u.prefix)
	for i := range stored {
		if stored[i].Level == layout.Written {
			continue
		}
		if err := u.removeInputs(ctx, there, &stored[i], stored); err != nil && !errors.Is(err, store.ErrGone) {
			return err
		}
	}
	return nil
}

// expire removes old objects, those of lower levels first.
func (u *Uploader) expire(ctx context.Context) error {
	now := u.options.Now()
	ofParquet := u.parquetRetention()
	if u.options.MaxAge == 0 && ofParquet.MaxAge == 0 || now.Sub(u.expired) < expireInterval {
		return nil
	}
	var old []layout.File
	var oldTables []string
	for o, err := range u.bucket.List(ctx, u.prefix, "") {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(o.Key, u.prefix)
		if f, ok := layout.ParsePath(name); ok && u.isOld(&f) {
			old = append(old, f)
		} else if table, ok := lake.ParsePath(name); ok && ofParquet.IsOld(&table, now) {
			oldTables = append(oldTables, name)
		}
	}
	slices.SortStableFunc(old, func(a, b layout.File) int { return cmp.Compare(a.Level, b.Level) })
	paths := oldTables
	for i := range old {
		paths = append(paths, old[i].Path)
	}
	for _, name := range paths {
		if err := u.bucket.Remove(ctx, u.key(name), u.options.Timeout); err != nil {
			return err
		}
		u.options.Removed(u.bucket.Path(u.key(name)))
	}
	u.expired = now
	return nil
}
