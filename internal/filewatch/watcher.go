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
)

// Handler handles a file. After an error other than a *RetryError, ErrChanged and ErrPending, the
// file is skipped until it changes.
type Handler func(ctx context.Context, file *File) error

var (
	// ErrPending is returned by a Handler that still works on the file, and calls Done later.
	ErrPending = errors.New("the file is not handled yet")
	// ErrRemoved means that the Handler has removed the file, or that it is gone.
	ErrRemoved = errors.New("the file was removed")
)

const minRetryDelay = time.Second

// Watcher passes files to a Handler, one after the other, from Start to Shutdown.
type Watcher struct {
	// MaxRetryDelay is the most time until a file is due for a retry. The first retry is due
	// after a second, and each further one after twice the time. Default: 30s.
	MaxRetryDelay time.Duration
	// QuietTime is how long a file must not have changed to be complete. nil is the poll interval.
	QuietTime func(file *File) time.Duration
	// NeverEmpty reports whether an empty file of this path is damaged, and handled. All other empty files are
	// skipped, since a program may have just created them. nil is none.
	NeverEmpty func(path string) bool
	// StartAtEnd skips the files that the first poll ever finds.
	StartAtEnd bool
	// Polled is called after each poll that could list all directories, with the number of
	// files that are found, not handled and not pending, and with the pending files that are
	// gone. It may be nil.
	Polled func(unhandled int, gone []string)

	config Config
	finder *finder
	handle Handler
	logger *zap.Logger

	mu     sync.Mutex // guards states
	states *states
	pause  time.Duration // until the next poll, after maxRejected

	listing time.Duration // that the last poll took to list files

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// New returns a Watcher of a valid configuration.
func New(config Config, handle Handler, logger *zap.Logger) (*Watcher, error) {
	finder, err := newFinder(config, logger)
	if err != nil {
		return nil, err
	}
	return &Watcher{
		MaxRetryDelay: 30 * time.Second,
		config:        config, finder: finder, handle: handle, logger: logger, states: newStates(nil),
	}, nil
}

// Start loads the checkpoints of the receiver with this ID and starts to poll.
func (w *Watcher) Start(ctx context.Context, host component.Host, receiver component.ID) error {
	client, err := w.storageClient(ctx, host, receiver)
	if err != nil {
		return err
	}
	w.states = newStates(client)
	if err := w.states.load(ctx, time.Now()); err != nil {
		w.logger.Warn("Cannot load file checkpoints; re-reading files without one", zap.Error(err))
	}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.running.Go(func() {
		for {
			w.Poll(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(w.untilNextPoll(time.Now()), minPause*w.listing)):
			}
		}
	})
	return nil
}

// minPause is the shortest time between two polls, as a multiple of the time that the first one took to list files:
// a poll that lists many files does not come often. The time of the Handler does not count.
const minPause = 10

func (w *Watcher) storageClient(ctx context.Context, host component.Host, receiver component.ID) (storage.Client, error) {
	if w.config.Storage == nil {
		return nil, nil
	}
	found, ok := host.GetExtensions()[*w.config.Storage]
	if !ok {
		return nil, fmt.Errorf("storage: extension %q not found: define it under extensions and list it in service::extensions", w.config.Storage)
	}
	extension, ok := found.(storage.Extension)
	if !ok {
		return nil, fmt.Errorf("storage: extension %q is not a storage extension; use one such as file_storage", w.config.Storage)
	}
	return extension.GetClient(ctx, component.KindReceiver, receiver, "files")
}

// Shutdown cancels the context of the Handler and waits until it has returned.
func (w *Watcher) Shutdown(ctx context.Context) error {
	if w.cancel == nil { // not started
		return nil
	}
	w.cancel()
	w.running.Wait()
	w.cancel = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states.close(ctx)
}

// maxRejected is how many files the pipeline may reject in a row before the others wait for
// the next poll, which then has a backoff.
const maxRejected = 10

// Poll finds files once, and handles those that are complete and new, or due for a retry.
// Start calls it.
func (w *Watcher) Poll(ctx context.Context) {
	now := time.Now()
	files, complete := w.finder.find()
	w.listing = time.Since(now)
	rejecting, err := w.handleAll(ctx, w.found(ctx, files, now))
	if err != nil {
		return
	}
	if rejecting {
		w.pause = w.nextDelay(w.pause)
	} else {
		w.pause = 0
	}
	w.mu.Lock()
	unhandled, gone := w.states.count(slices.DeleteFunc(files, w.skips), now)
	err = w.states.forget(ctx, now)
	w.mu.Unlock()
	if ctx.Err() == nil {
		w.report(err)
	}
	if complete && w.Polled != nil {
		w.Polled(unhandled, gone)
	}
}

// handleAll handles files, until the pipeline has rejected maxRejected in a row. The error is that of ctx.
func (w *Watcher) handleAll(ctx context.Context, files []*File) (rejecting bool, err error) {
	rejected := 0
	for _, file := range files {
		w.begin(file)
		err := w.handle(ctx, file)
		if err != nil && ctx.Err() != nil {
			return false, ctx.Err()
		}
		if !errors.Is(err, ErrPending) {
			w.Done(ctx, file, err)
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if again, ok := errors.AsType[*RetryError](err); ok && again.Rejected {
			rejected++
		} else {
			rejected = 0
		}
		if rejected == maxRejected {
			return true, nil
		}
	}
	return false, nil
}

// found returns the files that are due.
func (w *Watcher) found(ctx context.Context, files []*File, now time.Time) []*File {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.states.adoptRenamed(files, now) > 0 {
		// Before a checkpoint is replaced by that of another file with the old name.
		w.report(w.states.save(ctx))
	}
	if w.StartAtEnd && !w.states.started {
		for _, file := range files {
			w.states.lookup(file.Path).foundAt = now
			w.states.replaceCheckpoint(file.Path, file.version)
		}
		w.report(w.states.start(ctx))
	}
	return w.due(files, now)
}

// begin marks a file as pending until Done.
func (w *Watcher) begin(file *File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.states.lookup(file.Path)
	known.pending, known.removed = true, version{}
}

// Progress returns the last progress that SaveProgress stored for this version of a file.
func (w *Watcher) Progress(file *File) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.states.lookup(file.Path); known.begun.sameContent(file.version) {
		return known.progress
	}
	return nil
}

// SaveProgress stores the progress of a Handler in a file that it has not finished.
func (w *Watcher) SaveProgress(ctx context.Context, file *File, progress []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report(w.states.setProgress(context.WithoutCancel(ctx), file.Path, file.version, progress))
}

// untilNextPoll is the time until the next poll: the poll interval, or less if files are to
// be retried before.
func (w *Watcher) untilNextPoll(now time.Time) time.Duration {
	retry := w.pause
	w.mu.Lock()
	at, waiting := w.states.nextRetry()
	w.mu.Unlock()
	if waiting && retry == 0 {
		retry = max(at.Sub(now), minRetryDelay)
	}
	if retry == 0 {
		return w.config.PollInterval
	}
	return min(retry, w.config.PollInterval)
}

// nextDelay is the delay of a retry that follows one after this delay.
func (w *Watcher) nextDelay(delay time.Duration) time.Duration {
	return min(max(2*delay, minRetryDelay), w.MaxRetryDelay)
}

// due returns the files to handle at this poll, without those that are pending: those that were never tried, oldest first,
// then those whose retry is due. Of several links to one file it returns one: the next poll finds its checkpoint.
func (w *Watcher) due(files []*File, now time.Time) (due []*File) {
	inProgress := map[identity]bool{}
	for _, known := range w.states.all() {
		if known.pending { // maybe under a name that it has no longer
			inProgress[known.found.identity()] = true
		}
	}
	for _, file := range files {
		known := w.states.lookup(file.Path)
		if known.found != file.version {
			known.found, known.since, known.retry = file.version, now, retry{failures: known.retry.failures}
		}
		known.foundAt = now
		quiet := w.config.PollInterval
		if w.QuietTime != nil {
			quiet = w.QuietTime(file)
		}
		// A poll may come early.
		complete := now.Sub(known.since) >= quiet || now.Sub(time.Unix(0, file.version.ModTime)) >= quiet
		file.Resent = known.retry.rejected
		if complete && !known.pending && known.removed != file.version && !w.skips(file) && !known.checkpoint.sameContent(file.version) && !known.retry.at.After(now) {
			due = append(due, file)
		}
	}
	due = slices.DeleteFunc(due, func(file *File) bool {
		id := file.version.identity()
		repeated := id.inode != 0 && inProgress[id]
		inProgress[id] = true
		return repeated
	})
	slices.SortFunc(due, func(a, b *File) int {
		return cmp.Or(
			w.states.lookup(a.Path).retry.at.Compare(w.states.lookup(b.Path).retry.at), // zero if never tried
			cmp.Compare(a.version.ModTime, b.version.ModTime),
			strings.Compare(a.Path, b.Path),
		)
	})
	return due
}

// skips reports whether a file is left alone until it has content.
func (w *Watcher) skips(file *File) bool {
	return file.Size == 0 && (w.NeverEmpty == nil || !w.NeverEmpty(file.Path))
}

func (w *Watcher) report(saveError error) {
	if saveError != nil {
		w.logger.Warn("Cannot save file checkpoints", zap.Error(saveError))
	}
}

// Done logs the result of handling a file, and saves its checkpoint unless it is
// handled again. A Handler that returned ErrPending calls it.
func (w *Watcher) Done(ctx context.Context, file *File, err error) {
	ctx = context.WithoutCancel(ctx) // the checkpoint of an accepted file is saved during shutdown, too
	w.mu.Lock()
	defer w.mu.Unlock()
	path, known := zap.String("path", file.Path), w.states.lookup(file.Path)
	known.pending = false
	again, ok := errors.AsType[*RetryError](err)
	switch {
	case errors.Is(err, ErrChanged):
		return
	case errors.Is(err, ErrRemoved):
		w.states.remove(file.Path, file.version)
		return
	case ok:
		w.retryLater(known, again, path)
		return
	case err != nil:
		w.logger.Warn("Skipping file until it changes", path, zap.Error(err))
	default:
		w.logger.Debug("Read file", path)
	}
	known.retry = retry{}
	w.report(w.states.setCheckpoint(ctx, file.Path, file.version))
}

// retryLater sets the time of the next attempt. The second failure in a row is logged as a
// warning: the first may be a short one that concerns all files.
func (w *Watcher) retryLater(known *state, err *RetryError, path zap.Field) {
	r := &known.retry
	r.failures++
	r.delay = w.nextDelay(r.delay)
	r.at = time.Now().Add(r.delay)
	r.rejected = r.rejected || err.Rejected
	if r.failures == 2 {
		w.logger.Warn("Cannot process file; will retry", path, zap.Error(err))
	} else {
		w.logger.Debug("Cannot process file", path, zap.Duration("retry_after", r.delay), zap.Error(err))
	}
}
