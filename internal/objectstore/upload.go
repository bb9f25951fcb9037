// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package objectstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v7"
	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/regularfile"
)

// UploadOptions of an Uploader.
type UploadOptions struct {
	Location

	// Directory has the files, which may be in subdirectories, Levels deep.
	Directory string
	Levels    int
	// Timeout is that of a request.
	Timeout time.Duration
	// MaxAge is when objects are removed, by the End of their names. 0 is never.
	MaxAge time.Duration

	// Uploaded gets a file that the bucket has now, and its bytes with those of its index. It may be called concurrently.
	Uploaded func(path string, bytes int64)
	// Removed gets an object that is older than MaxAge.
	Removed func(key string)
	// Waiting gets the number of files that the bucket has not.
	Waiting func(files int)
	// Failed gets an error. A *ConflictError is final for its file; else Run tries again after a time. It may be called concurrently.
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
	// indexTime is how long a file may take to get its index after its name.
	indexTime = 5 * time.Second
	// maxIndex is the size of an index that is uploaded.
	maxIndex = 64 << 20
)

// Uploader uploads the closed files of a directory, the oldest first, to objects with their names. The directory is the queue:
// what is in it and not in the bucket waits, also after a restart.
type Uploader struct {
	options UploadOptions
	bucket  *bucket
	retry   *backoff.ExponentialBackOff
	closed  chan struct{}
	listed  bool
	expired time.Time             // when old objects were removed last
	times   map[string]*fileTimes // of files that wait, by names below the directory

	mu   sync.Mutex
	done map[string]bool // files that are in the bucket, or are too old for it, by names below the directory
}

// fileTimes say when something happened to a file that waits; zero is never.
type fileTimes struct {
	noIndex  time.Time // it was seen without a complete index
	conflict time.Time // another object of its name was found
	stored   time.Time // it was uploaded, and replaces others
}

// NewUploader returns an Uploader. It sends no request.
func NewUploader(options UploadOptions) (*Uploader, error) {
	options.Interval, options.Concurrency = cmp.Or(options.Interval, 10*time.Second), cmp.Or(options.Concurrency, 4)
	if options.Now == nil {
		options.Now = time.Now
	}
	options.Prefix = strings.Trim(options.Prefix, "/")
	b, err := openBucket(options.Location, 1, &archive.Stats{}) // Run has its own retries
	if err != nil {
		return nil, err
	}
	retry := backoff.NewExponentialBackOff()
	retry.InitialInterval, retry.MaxInterval = min(time.Second, options.Interval), time.Minute
	return &Uploader{options: options, bucket: b, retry: retry, closed: make(chan struct{}, 1), done: map[string]bool{}}, nil
}

// Run uploads until ctx ends.
func (u *Uploader) Run(ctx context.Context) {
	defer u.bucket.close()
	for ctx.Err() == nil {
		delay, closed := u.options.Interval, u.closed
		if err := panics.Guarded(func() error { return u.pass(ctx) })(); err == nil {
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

// FileClosed makes Run look for closed files soon. It is safe for concurrent use.
func (u *Uploader) FileClosed() {
	select {
	case u.closed <- struct{}{}:
	default:
	}
}

// Waits reports whether a file is not in the bucket, by its path below the directory. It is safe for concurrent use.
func (u *Uploader) Waits(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.done[name]
}

// Forget reports whether a file waited that was removed.
func (u *Uploader) Forget(path string) (waited bool) {
	name, _ := filepath.Rel(u.options.Directory, path) // both are absolute
	u.mu.Lock()
	defer u.mu.Unlock()
	waited = !u.done[filepath.ToSlash(name)]
	delete(u.done, filepath.ToSlash(name))
	return waited
}

// pass uploads the files that wait, and removes old objects. After an error of the store, the rest is for the next pass; one of
// the directory does not keep other files from being uploaded.
func (u *Uploader) pass(ctx context.Context) error {
	files, failed := u.scan()
	if !u.listed {
		if err := u.list(ctx, files); err != nil {
			return err
		}
		u.listed = true
	}
	waiting := u.waiting(files)
	u.options.Waiting(len(waiting))
	var counting sync.Mutex
	var first error // of the directory
	left := len(waiting)
	group, all := errgroup.WithContext(ctx)
	group.SetLimit(u.options.Concurrency)
	for _, f := range waiting {
		if all.Err() != nil {
			break
		}
		group.Go(func() error {
			uploaded := false
			err := panics.Guarded(func() (err error) { // a file does not keep others from being uploaded
				uploaded, err = u.upload(all, &f)
				return err
			})()
			counting.Lock()
			defer counting.Unlock()
			switch {
			case archive.IsStorageError(err):
				return err
			case err != nil:
				first = cmp.Or(first, err)
			case uploaded:
				left--
				u.options.Waiting(left)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := u.expire(ctx); err != nil {
		return err
	}
	return cmp.Or(first, failed)
}

// localFile is a closed file.
type localFile struct {
	name string // below the directory, with slashes
	recordfile.Name
	manifest []byte
	replaces []string   // names of other files
	times    *fileTimes // if it waits
}

// scan returns the closed files of the directory that no other one replaces, the oldest first.
func (u *Uploader) scan() ([]localFile, error) {
	var files []localFile
	var failed error
	root := u.options.Directory + string(filepath.Separator)
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch f, ours := u.parse(filepath.ToSlash(name)); {
		case errors.Is(err, fs.ErrNotExist): // it has just been removed
		case err != nil:
			failed = err
		case entry.IsDir() && name != "." && (strings.Count(name, string(filepath.Separator)) >= u.options.Levels || !recordfile.IsGroupName(entry.Name())):
			return fs.SkipDir
		case ours && entry.Type().IsRegular():
			files = append(files, f)
		}
		return nil
	})
	names := make([]string, len(files))
	for i := range files {
		names[i] = files[i].name
	}
	replaced, _ := recordfile.Replaced(names, func(name string) ([]byte, error) { return recordfile.ReadManifest(u.path(name)) })
	var kept []localFile
	for _, f := range files {
		switch {
		case replaced[f.name] != "":
			continue
		case f.Span > 0 && u.Waits(f.name):
			if err := u.readManifest(&f); err != nil {
				failed = err // it waits, as its inputs would count again
				continue
			}
		}
		kept = append(kept, f)
	}
	files = kept
	slices.SortFunc(files, func(a, b localFile) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.name, b.name))
	})
	return files, failed
}

// parse reads the name of a closed file below the directory or the prefix. ok is false for other names.
func (u *Uploader) parse(name string) (f localFile, ok bool) {
	directories, base := path.Split(name)
	f = localFile{name: name}
	f.Name, ok = recordfile.ParseName(base)
	for directory := range strings.SplitSeq(strings.TrimSuffix(directories, "/"), "/") {
		ok = ok && (directories == "" || recordfile.IsGroupName(directory))
	}
	return f, ok && !f.Partial && strings.Count(directories, "/") <= u.options.Levels
}

func (u *Uploader) key(name string) string { return path.Join(u.options.Prefix, name) }

// list finds the files that the bucket has already. One that replaces others must have its manifest there, and none of these.
func (u *Uploader) list(ctx context.Context, files []localFile) error {
	const found, withManifest, withInputs = 1, 2, 4
	states := make(map[string]int, len(files))
	resultOf := map[string]string{} // by the name of an input
	for _, f := range files {
		states[f.name] = 0
		for _, input := range f.replaces {
			resultOf[input] = f.name
		}
	}
	for o, err := range u.bucket.list(ctx, u.options.directory()) {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(o.key, u.options.directory())
		of, isManifest := ofManifest(strings.TrimSuffix(name, recordfile.IndexSuffix))
		if isManifest {
			states[of] |= withManifest
		}
		if result := resultOf[of]; result != "" {
			states[result] |= withInputs
		}
		if _, local := states[name]; !local {
			continue
		}
		if info, err := os.Lstat(u.path(name)); err == nil && info.Size() == o.size {
			states[name] |= found
		} // an object of another size is a conflict, which the upload finds
	}
	for _, f := range files {
		if state := states[f.name]; state == found && f.Span == 0 || state == found|withManifest {
			u.setDone(f.name)
		}
	}
	return nil
}

func (u *Uploader) path(name string) string {
	return filepath.Join(u.options.Directory, filepath.FromSlash(name))
}

// finish removes what a stored file replaces. The file then waits no longer.
func (u *Uploader) finish(ctx context.Context, f *localFile) error {
	if f.manifest != nil {
		if err := u.replace(ctx, f); err != nil {
			return err
		}
	}
	u.setDone(f.name)
	return nil
}

func (u *Uploader) setDone(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done[name] = true
}

// waiting returns the files that wait: not those that are as old as the objects that are removed. It drops what is known of
// files that other processes have removed.
func (u *Uploader) waiting(files []localFile) (waiting []localFile) {
	u.mu.Lock()
	defer u.mu.Unlock()
	done, times := make(map[string]bool, len(files)), map[string]*fileTimes{}
	for _, f := range files {
		if u.done[f.name] || u.isOld(f.End()) {
			done[f.name] = true
			continue
		}
		f.times = cmp.Or(u.times[f.name], &fileTimes{})
		times[f.name] = f.times
		waiting = append(waiting, f)
	}
	if u.times = times; len(u.done) > 2*len(done)+1000 {
		u.done = done
	}
	maps.Copy(u.done, done)
	return waiting
}

func (u *Uploader) isOld(t time.Time) bool {
	return u.options.MaxAge > 0 && u.options.Now().Sub(t) > u.options.MaxAge
}

// upload uploads a file after its index, so that readers find the index of each file that has one. uploaded is false if the file
// must wait, is gone, or can never be uploaded.
func (u *Uploader) upload(ctx context.Context, f *localFile) (uploaded bool, err error) {
	switch now := u.options.Now(); {
	case now.Sub(f.times.conflict) < conflictInterval, now.Sub(f.times.stored) < replaceTime:
		return false, nil
	case !f.times.stored.IsZero():
		return true, u.finish(ctx, f)
	}
	file, err := regularfile.Open(u.path(f.name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	if locked, err := regularfile.TryLockShared(file); err != nil || !locked { // it is not removed, unless it is being removed
		return false, err
	}
	info, err := file.Stat()
	if err != nil {
		return false, err
	}
	index, wait := u.index(f, info.Size())
	if wait {
		return false, nil
	}
	if index != nil {
		err = u.put(ctx, f.name+recordfile.IndexSuffix, bytes.NewReader(index), int64(len(index)))
	}
	if err == nil && f.manifest != nil {
		err = u.put(ctx, f.name+manifestSuffix, bytes.NewReader(f.manifest), int64(len(f.manifest)))
	}
	if err == nil {
		err = u.put(ctx, f.name, file, info.Size())
	}
	if _, isConflict := errors.AsType[*ConflictError](err); isConflict {
		u.options.Failed(err, 0)
		f.times.conflict = u.options.Now()
		return false, nil
	}
	if err != nil {
		return false, err
	}
	u.options.Uploaded(u.path(f.name), info.Size()+int64(len(index)))
	if f.manifest != nil {
		f.times.stored = u.options.Now()
		return false, nil
	}
	return true, u.finish(ctx, f)
}

// index reads the index of a file of size bytes. It is nil if there is none, and wait is set if it may be written soon.
func (u *Uploader) index(f *localFile, size int64) (data []byte, wait bool) {
	data, err := regularfile.Read(u.path(f.name)+recordfile.IndexSuffix, maxIndex)
	if err == nil {
		if _, err = recordfile.ParseIndex(data, size, maxIndex); err == nil {
			return data, false
		}
	}
	if f.times.noIndex.IsZero() {
		f.times.noIndex = u.options.Now()
	}
	return nil, u.options.Now().Sub(f.times.noIndex) < indexTime
}

// expire removes old objects, each before its index.
func (u *Uploader) expire(ctx context.Context) error {
	now := u.options.Now()
	if u.options.MaxAge == 0 || now.Sub(u.expired) < expireInterval {
		return nil
	}
	for o, err := range u.bucket.list(ctx, u.options.directory()) {
		if err != nil {
			return err
		}
		of, isIndex := strings.CutSuffix(strings.TrimPrefix(o.key, u.options.directory()), recordfile.IndexSuffix)
		if file, isManifest := ofManifest(of); isManifest {
			of, isIndex = file, true
		}
		if f, ours := u.parse(of); !ours || !u.isOld(f.End()) {
			continue
		}
		if err := u.bucket.remove(ctx, o.key, u.options.Timeout); err != nil {
			return err
		}
		if !isIndex {
			u.options.Removed(u.bucket.path(o.key))
		}
	}
	u.expired = now
	return nil
}

// ConflictError says that there is another object of a name.
type ConflictError struct{ Path string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("put %s: there is another object of this name: give each Collector a prefix of its own, such as ${env:HOSTNAME}", e.Path)
}
