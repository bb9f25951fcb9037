// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/bucket"
)

const (
	// longListing is how long a listing takes that requests do not wait for.
	longListing = 100 * time.Millisecond
	// restFactor is how many times as long as a long listing no other one starts.
	restFactor = 5
	// maxRest bounds that time.
	maxRest = 30 * time.Second
)

// lister lists segments, one list at a time. A request waits for a list only if the last one is old. Else a list that takes long is made
// beside the requests, which use the last one meanwhile.
type lister struct {
	list    func(context.Context) ([]*store.Segment, error)
	ctx     context.Context // of all lists
	working *sync.WaitGroup
	expired atomic.Bool  // the last list is too old, whatever its age
	size    atomic.Int64 // of the last list, in bytes

	mu      *semaphore.Weighted // guards the following; a request whose client has left does not wait for it
	last    listing
	running chan *listing // gets the list that is being made; nil if there is none
	began   time.Time     // when the last list was begun: it has what there was then
	took    time.Duration
}

// listing is a list of segments.
type listing struct {
	found    []*store.Segment
	failed   error // of some of them
	panicked bool
	began    time.Time
	took     time.Duration
}

// isIncomplete reports whether segments may be missing, of which failed does not say where.
func (l *listing) isIncomplete() bool { return l.panicked || bucket.IsStorageError(l.failed) }

func newLister(ctx context.Context, working *sync.WaitGroup, list func(context.Context) ([]*store.Segment, error)) *lister {
	return &lister{list: list, ctx: ctx, working: working, mu: semaphore.NewWeighted(1)}
}

// get returns a list that is at most as old as maxAge, or older if lists take long. If a store does not answer, it has the segments of the
// last list.
func (l *lister) get(ctx context.Context, maxAge time.Duration) (listing, error) {
	if err := l.mu.Acquire(ctx, 1); err != nil {
		return listing{}, err
	}
	defer l.mu.Release(1)
	if made := l.next(ctx, maxAge); made != nil {
		if made.isIncomplete() {
			made.found = l.last.found
		}
		l.last = *made
		l.size.Store(sizeOf(made.found))
	}
	return l.last, ctx.Err()
}

// sizeOf estimates the bytes of segments.
func sizeOf(found []*store.Segment) int64 {
	size := int64(len(found)) * int64(unsafe.Sizeof(store.Segment{})+unsafe.Sizeof(found))
	for _, s := range found {
		size += int64(len(s.Path) + len(s.ETag))
	}
	return size
}

// next returns a new list, or nil if the last one is to be used. That is at most as old as maxAge, or older if lists take long and maxAge
// is not 0. After a failure it is as if they took no time.
func (l *lister) next(ctx context.Context, maxAge time.Duration) (latest *listing) {
	if l.expired.Swap(false) {
		l.began = time.Time{}
	}
	for started := false; ; {
		select {
		case latest = <-l.running:
			l.accept(latest)
		default:
		}
		rest, long := maxAge, l.took > longListing && maxAge > 0
		if long {
			rest = max(maxAge, min(restFactor*l.took, maxRest))
		}
		age := time.Since(l.began)
		if age < rest || l.ctx.Err() != nil {
			return latest
		}
		if l.running == nil {
			l.start()
			started = true
		}
		if long && age < 2*rest+l.took {
			return latest
		}
		select {
		case latest = <-l.running:
			l.accept(latest)
			if started {
				return latest
			}
		case <-ctx.Done():
			return latest
		}
	}
}

func (l *lister) accept(made *listing) {
	l.running, l.began, l.took = nil, made.began, made.took
	if made.isIncomplete() {
		l.took = 0
	}
}

// start makes a list. It needs no request: the next one takes it.
func (l *lister) start() {
	running, made := make(chan *listing, 1), &listing{began: time.Now()}
	l.running = running
	l.working.Go(func() {
		err := panics.Guarded(func() error {
			made.found, made.failed = l.list(l.ctx)
			return nil
		})()
		if err != nil { // pages show it
			made.failed, made.panicked = fmt.Errorf("listing files: %w", err), true
		}
		made.took = time.Since(made.began)
		running <- made
	})
}
