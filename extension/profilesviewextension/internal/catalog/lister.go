// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
)

const (
	// longListing is how long a listing takes that requests do not wait for.
	longListing = 100 * time.Millisecond
	// restFactor is how many times as long as a long listing no other one starts.
	restFactor = 5
	// maxRest bounds that time.
	maxRest = 30 * time.Second
)

// lister lists files, one list at a time. A request waits for a list only if the last one is old. Else a list that takes long is made
// beside the requests, which use the last one meanwhile.
type lister struct {
	list    func(context.Context) ([]archive.File, []error)
	ctx     context.Context // of all lists
	cancel  context.CancelFunc
	working sync.WaitGroup

	running chan *listing // gets the list that is being made; nil if there is none
	began   time.Time     // when the last list was begun: it has what there was then
	took    time.Duration
}

// listing is a list of files.
type listing struct {
	found    []archive.File
	failed   []error
	panicked bool
	began    time.Time
	took     time.Duration
}

// isIncomplete reports whether files may be missing, of which no path in failed says so.
func (l *listing) isIncomplete() bool {
	return l.panicked || slices.ContainsFunc(l.failed, archive.IsStorageError)
}

func newLister(list func(context.Context) ([]archive.File, []error)) lister {
	ctx, cancel := context.WithCancel(context.Background())
	return lister{list: list, ctx: ctx, cancel: cancel}
}

// close ends the list that is being made. No other one starts.
func (l *lister) close() {
	l.cancel()
	l.working.Wait()
}

// next returns a new list, or nil if the last one is to be used. That is at most as old as maxAge, or older if lists take long and maxAge
// is not 0. After a failure it is as if they took no time.
func (l *lister) next(ctx context.Context, maxAge time.Duration) (latest *listing) {
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
			made.failed, made.panicked = []error{fmt.Errorf("listing files: %w", err)}, true
		}
		made.took = time.Since(made.began)
		running <- made
	})
}
