// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
)

// Handler handles a file, and calls [Watcher.Done], or has a goroutine of [Watcher.Go] do so later. If ctx is canceled
// before the file is handled, it returns without Done.
type Handler func(ctx context.Context, file *File)

// Watcher passes files to a Handler, one after the other, from Start to Shutdown.
type Watcher struct {
	// QuietTime is how long a file must not have changed to be complete. 0 is the poll interval.
	QuietTime time.Duration

	// StartAtEnd skips the files that the first poll ever finds.
	StartAtEnd bool
	// Missing is called with files that were removed while they waited for the Handler. nil is none.
	Missing func(files []*File)
	// Polled is called after each poll that could list all directories, with the number of files that are not handled
	// yet. nil is none.
	Polled func(unhandled int)

	config  Config
	finder  *finder
	handle  Handler
	logger  *zap.Logger
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	states   map[string]*state
	queue    []*File // those that wait for the Handler, or for their retry, in this order
	rejected int     // files in a row that the pipeline has rejected
	resumeAt time.Time
	changed  chan struct{}          // has an element if the queue may have another first file
	storage  storage.Client         // nil keeps checkpoints in memory only
	unsaved  map[string]*checkpoint // by path
	started  bool                   // with StartAtEnd: there has been a poll, maybe of an earlier process
}

// state is what the Watcher knows of the file at a path.
type state struct {
	checkpoint checkpoint
	found      version   // at the last poll that found the file
	foundAt    time.Time // the time of that poll
	since      time.Time // the time of the first poll that found this version
	inProgress *File     // what the Handler has, maybe an earlier version; nil if none
	removedAt  time.Time // by the Handler
	failures   int       // in a row
	retryAt    time.Time // after a failure; zero before one
}

const (
	// minRetryDelay is the time until a file is due for its first retry. Each further one is due after twice the time, at
	// most maxRetryDelay.
	minRetryDelay = time.Second
	maxRetryDelay = 30 * time.Second

	// maxRejected is how many files the pipeline may reject in a row before the others wait, too.
	maxRejected = 10

	// forgetAfter is how long a file is gone before its checkpoint is dropped. If a
	// file system is unmounted for a shorter time, its files are not read again.
	forgetAfter = time.Hour

	// minPause is the shortest time between two polls, as a multiple of the time that the first one took to list files:
	// a poll that lists many files does not come often.
	minPause = 10
)

// New returns a Watcher of a valid configuration.
func New(config Config, handle Handler, logger *zap.Logger) *Watcher {
	return &Watcher{
		config: config, finder: newFinder(config, logger), handle: handle, logger: logger,
		states: map[string]*state{}, changed: make(chan struct{}, 1), unsaved: map[string]*checkpoint{},
	}
}

// Start loads the checkpoints of the receiver with this ID and starts to poll.
func (w *Watcher) Start(ctx context.Context, host component.Host, receiver component.ID) error {
	if err := w.finder.stored.start(); err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	if err := w.load(ctx, host, receiver); err != nil {
		return errors.Join(err, w.finder.stored.stop())
	}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.running.Go(func() {
		for ctx.Err() == nil {
			var listing time.Duration
			panics.Log(w.logger, "looking for files again after the poll interval", func() { listing = w.poll() })
			select {
			case <-ctx.Done():
			case <-time.After(max(w.config.PollInterval, minPause*listing)):
			}
		}
	})
	w.running.Go(func() {
		for ctx.Err() == nil {
			file, wait := w.take(time.Now())
			if file != nil {
				w.guarded(ctx, file)
				continue
			}
			select {
			case <-ctx.Done():
			case <-w.changed:
			case <-time.After(wait):
			}
		}
	})
	return nil
}

// guarded calls the Handler. If that panics, the file is handled again later.
func (w *Watcher) guarded(ctx context.Context, file *File) {
	err := panics.Guarded(func() error { w.handle(ctx, file); return nil })()
	if caught, ok := errors.AsType[*panics.Error](err); ok {
		w.logger.Error("Panic while handling a file; will retry", zap.String("path", file.Path), zap.Any("panic", caught.Value), zap.ByteString("stack", caught.Stack))
		w.Done(file, &RetryError{Err: err})
	}
}

// Go runs a goroutine of the Handler, for which Shutdown waits.
func (w *Watcher) Go(run func()) { w.running.Go(run) }

// Shutdown cancels the context of the Handler, waits until it has returned, and looks for files that were removed since
// the last poll.
func (w *Watcher) Shutdown(ctx context.Context) error {
	if w.cancel == nil { // not started
		return nil
	}
	w.cancel()
	w.running.Wait()
	w.cancel = nil
	w.look(time.Now())
	err := w.finder.stored.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.storage == nil {
		return err
	}
	return errors.Join(err, w.store(ctx), w.storage.Close(ctx))
}

// Poll finds files once, and handles those that are due. It is for tests, without Start.
func (w *Watcher) Poll(ctx context.Context) {
	now := time.Now()
	w.poll()
	for file, _ := w.take(now); file != nil && ctx.Err() == nil; file, _ = w.take(now) {
		w.handle(ctx, file)
	}
}

// poll finds files and queues those that are complete and new. It returns the time that it took to list them.
func (w *Watcher) poll() (listing time.Duration) {
	start := time.Now()
	unhandled, complete, listing := w.look(start)
	if complete && w.Polled != nil {
		w.Polled(unhandled)
	}
	return listing
}

// look finds files, queues those that are complete and new, and reports those that are gone.
func (w *Watcher) look(start time.Time) (unhandled int, complete bool, listing time.Duration) {
	files, complete := w.finder.find()
	listing = time.Since(start)
	var missing []*File
	func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		unhandled = w.update(files, start)
		missing = w.forget(complete, start)
		w.save()
	}()
	if len(missing) > 0 && w.Missing != nil {
		w.Missing(missing)
	}
	return unhandled, complete, listing
}

// update takes in the files that the poll of this time has found, and returns how many of them are not handled. Of several
// links to one file it queues one: the next poll finds its checkpoint. w.mu is held.
func (w *Watcher) update(files []*File, start time.Time) (unhandled int) {
	taken := map[version]bool{} // queued or in progress, maybe under a name that the file has no longer
	take := func(file *File) {  // on systems with inodes
		if id := file.version.identity(); id != (version{}) {
			taken[id] = true
		}
	}
	for _, s := range w.states {
		if s.inProgress != nil {
			take(s.inProgress)
		}
	}
	handled := sync.OnceValue(w.handledIdentities)
	queued := w.queue
	w.queue = nil
	for _, file := range files {
		s := w.states[file.Path]
		if s == nil {
			s = &state{}
			w.states[file.Path] = s
		}
		if s.found != file.version {
			s.since, s.retryAt, s.failures = start, time.Time{}, 0
		}
		file.state, s.found, s.foundAt = s, file.version, start
		id := file.version.identity()
		switch {
		case s.checkpoint.Handled && s.checkpoint.Version.sameContent(file.version), s.removedAt.After(start):
		case id != (version{}) && handled()[id], w.StartAtEnd && !w.started: // renamed, or there at the first start
			w.set(file, checkpoint{Version: file.version, Handled: true})
		case file.Size == 0 && file.Stored == nil: // a program may have just created it; one of the exporter is damaged
		default:
			unhandled++
			if s.inProgress == nil && !taken[id] && w.isComplete(file, start) {
				take(file)
				w.queue = append(w.queue, file)
			}
		}
	}
	if w.StartAtEnd && !w.started {
		w.started = true
		w.unsaved[startedKey] = &checkpoint{Handled: true}
	}
	for _, file := range queued { // those that were not found, until forget
		if file.state.foundAt.Before(start) && !taken[file.version.identity()] {
			w.queue = append(w.queue, file)
		}
	}
	slices.SortFunc(w.queue, compare)
	w.wake()
	return unhandled
}

// handledIdentities are those of all files that were handled.
func (w *Watcher) handledIdentities() map[version]bool {
	all := map[version]bool{}
	for _, s := range w.states {
		if s.checkpoint.Handled {
			all[s.checkpoint.Version.identity()] = true
		}
	}
	return all
}

// isComplete also waits for an empty file: a program may copy it.
func (w *Watcher) isComplete(file *File, now time.Time) bool {
	quiet := cmp.Or(w.QuietTime, w.config.PollInterval)
	return file.Size > 0 && file.Stored != nil || now.Sub(file.state.since) >= quiet || now.Sub(file.Modified) >= quiet
}

// compare orders the queue: files that were never tried, oldest first, then by the time of the retry.
func compare(a, b *File) int {
	return cmp.Or(a.state.retryAt.Compare(b.state.retryAt), a.Modified.Compare(b.Modified), strings.Compare(a.Path, b.Path))
}

// forget drops the states of files that the poll of this time did not find: at once if nothing is stored of them and
// all directories could be listed, otherwise after forgetAfter. It returns those that were queued. w.mu is held.
func (w *Watcher) forget(complete bool, start time.Time) (missing []*File) {
	isLost := func(s *state) bool {
		gone := start.Sub(s.foundAt)
		return gone >= forgetAfter || gone > 0 && complete
	}
	w.queue = slices.DeleteFunc(w.queue, func(file *File) bool {
		lost := isLost(file.state)
		if lost {
			missing = append(missing, file)
		}
		return lost
	})
	for path, s := range w.states {
		switch gone := start.Sub(s.foundAt); {
		case s.inProgress != nil || !isLost(s):
		case s.checkpoint.isEmpty():
			delete(w.states, path)
		case gone >= forgetAfter:
			delete(w.states, path)
			w.unsaved[path] = &checkpoint{}
		}
	}
	return missing
}

// take returns the next file that is due and marks it as in progress, or returns how long to wait.
func (w *Watcher) take(now time.Time) (next *File, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, w.config.PollInterval
	}
	next = w.queue[0]
	if wait = max(next.state.retryAt.Sub(now), w.resumeAt.Sub(now)); wait > 0 {
		return nil, wait
	}
	w.queue = w.queue[1:]
	next.state.inProgress = next
	return next, 0
}

// wake makes the goroutine of the Handler look at the queue.
func (w *Watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// Done logs the result of handling a file, and saves its checkpoint unless it is handled again.
func (w *Watcher) Done(file *File, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, path := file.state, zap.String("path", file.Path)
	s.inProgress = nil
	retry, again := errors.AsType[*RetryError](err)
	if !again || !retry.Rejected {
		w.rejected = 0
	}
	switch {
	case errors.Is(err, ErrChanged):
		return
	case errors.Is(err, ErrRemoved):
		s.removedAt = time.Now() // a poll that started earlier may have found it
		if !s.checkpoint.isEmpty() {
			w.set(file, checkpoint{})
			w.save()
		}
		return
	case again:
		w.retry(file, retry, path)
		return
	case err != nil:
		w.logger.Warn("Skipping file until it changes", path, zap.Error(err))
	default:
		w.logger.Debug("Read file", path)
	}
	s.failures = 0
	w.set(file, checkpoint{Version: file.version, Handled: true})
	w.save()
}

// retry queues a file again. The second failure in a row is logged as a
// warning: the first may be a short one that concerns all files. w.mu is held.
func (w *Watcher) retry(file *File, err *RetryError, path zap.Field) {
	s := file.state
	s.failures++
	delay := backoff(s.failures)
	s.retryAt = time.Now().Add(delay)
	if err.Rejected {
		if w.rejected++; w.rejected%maxRejected == 0 {
			w.resumeAt = time.Now().Add(min(backoff(w.rejected/maxRejected), w.config.PollInterval))
		}
	}
	place, _ := slices.BinarySearchFunc(w.queue, file, compare)
	w.queue = slices.Insert(w.queue, place, file)
	w.wake()
	if s.failures == 2 {
		w.logger.Warn("Cannot process file; will retry", path, zap.Error(err))
	} else {
		w.logger.Debug("Cannot process file", path, zap.Duration("retry_after", delay), zap.Error(err))
	}
}

// backoff is the delay after a number of failures.
func backoff(failures int) time.Duration {
	return min(minRetryDelay<<min(failures-1, 10), maxRetryDelay)
}

// Backlog is the files that wait for the Handler or are in progress.
type Backlog struct {
	Files  int
	Bytes  int64
	Oldest time.Time // zero if there is none
}

// Backlog returns the current one.
func (w *Watcher) Backlog() (b Backlog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := slices.Clone(w.queue)
	for _, s := range w.states {
		if s.inProgress != nil {
			files = append(files, s.inProgress)
		}
	}
	for _, file := range files {
		b.Files++
		b.Bytes += file.Size
		if b.Oldest.IsZero() || file.Modified.Before(b.Oldest) {
			b.Oldest = file.Modified
		}
	}
	return b
}
