// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"sync"
	"time"
	"unsafe"

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

	mu      sync.Mutex // guards the following
	last    listing
	running chan struct{} // is closed when the list that is being made is the last one; nil if there is none
}

// listing is a list of segments.
type listing struct {
	found    []*store.Segment
	failed   error // of some of them
	panicked bool
	size     int64 // in bytes
	// began is when the list was begun: it has what there was then. It is zero if the list is too old, whatever its age.
	began time.Time
	took  time.Duration // 0 if segments may be missing, so that the next list is soon
}

// isIncomplete reports whether segments may be missing, of which failed does not say where.
func (l *listing) isIncomplete() bool { return l.panicked || bucket.IsStorageError(l.failed) }

func newLister(ctx context.Context, working *sync.WaitGroup, list func(context.Context) ([]*store.Segment, error)) *lister {
	return &lister{list: list, ctx: ctx, working: working}
}

// get returns a list that is at most as old as maxAge or begun since the call, or older if lists take long and maxAge is not 0. If a store does
// not answer, it has the segments of the last list.
func (l *lister) get(ctx context.Context, maxAge time.Duration) (listing, error) {
	for called := time.Now(); ; {
		last, next := l.look(maxAge, called)
		if next == nil {
			return last, ctx.Err()
		}
		select {
		case <-next:
		case <-ctx.Done():
			return last, ctx.Err()
		}
	}
}

// look returns the last list, and if a call must wait for the next one, what is closed then. It makes sure that a list is made if the last one
// has reached its age.
func (l *lister) look(maxAge time.Duration, called time.Time) (last listing, next <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest, long := maxAge, l.last.took > longListing && maxAge > 0
	if long {
		rest = max(maxAge, min(restFactor*l.last.took, maxRest))
	}
	age := time.Since(l.last.began)
	if age < rest || !l.last.began.Before(called) || l.ctx.Err() != nil {
		return l.last, nil
	}
	if l.running == nil {
		l.running = make(chan struct{})
		l.working.Go(l.make)
	}
	if long && age < 2*rest+l.last.took {
		return l.last, nil
	}
	return l.last, l.running
}

// make makes a list.
func (l *lister) make() {
	made := listing{began: time.Now()}
	err := panics.Guarded(func() error {
		made.found, made.failed = l.list(l.ctx)
		return nil
	})()
	if err != nil { // pages show it
		made.failed, made.panicked = fmt.Errorf("listing files: %w", err), true
	}
	made.took = time.Since(made.began)
	l.mu.Lock()
	defer l.mu.Unlock()
	if made.isIncomplete() {
		made.found, made.took = l.last.found, 0
	}
	made.size = sizeOf(made.found)
	l.last = made
	close(l.running)
	l.running = nil
}

// expire makes the next list a new one.
func (l *lister) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last.began = time.Time{}
}

// size is that of the last list in bytes.
func (l *lister) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last.size
}

// sizeOf estimates the bytes of segments.
func sizeOf(found []*store.Segment) int64 {
	size := int64(len(found)) * int64(unsafe.Sizeof(store.Segment{})+unsafe.Sizeof(found))
	for _, s := range found {
		size += int64(len(s.Path) + len(s.ETag))
	}
	return size
}
