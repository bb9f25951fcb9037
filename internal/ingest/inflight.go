// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// ErrInFlightLimit means that other payloads hold the bytes that one needs, and have
// held them for as long as it may wait.
var ErrInFlightLimit = errors.New("max_in_flight reached; retry later")

// errTaken means that a payload needs more bytes than it has reserved, and that others
// hold them. Work handles it.
var errTaken = errors.New("others hold the bytes that this payload needs")

// MustRestart reports whether err is for Reservation.Work, which handles it.
func MustRestart(err error) bool { return errors.Is(err, errTaken) }

// InFlight bounds the bytes that all payloads of the receivers that share it hold at a time, in
// all their sections. Of the limit,
//
//   - at most a quarter holds the bodies that are arriving or wait for their turn,
//   - at most a quarter holds the baselines of scrapes,
//   - at most a half is for one payload at work.
//
// So there is always room for one more payload when those at work have finished.
type InFlight struct {
	size      int64 // bytes
	work      *semaphore.Weighted
	baselines *semaphore.Weighted

	mu     sync.Mutex
	bodies map[*Reservation]int64 // bytes
	used   int64                  // by bodies, in bytes
	freed  chan struct{}          // closed when a body is freed
	inUse  int64                  // bytes of everything
}

// NewInFlight returns a limit of so many bytes.
func NewInFlight(size int64) *InFlight {
	return &InFlight{
		size:      size,
		work:      semaphore.NewWeighted(size - size/4), // the rest is for bodies
		baselines: semaphore.NewWeighted(size / 4),
		bodies:    map[*Reservation]int64{},
		freed:     make(chan struct{}),
	}
}

// MaxPayload is how many bytes one request, scrape or file may hold while it is at work.
func (f *InFlight) MaxPayload() int64 { return f.size / 2 }

// maxBody is how large a body may be, in bytes.
func (f *InFlight) maxBody() int64 { return f.size / 16 }

// maxBuffers is how many bytes a body may take while its buffer grows.
func (f *InFlight) maxBuffers() int64 { return 2 * f.maxBody() }

// CheckBody returns a *pproftranslator.LimitError if a body of this size in bytes, which
// may be negative for unknown, is too large.
func (f *InFlight) CheckBody(bytes int64) error {
	if most := f.maxBody(); bytes > most {
		return tooLarge("size of the body in bytes", most, bytes, "a sixteenth")
	}
	return nil
}

// InUse is how many bytes are reserved.
func (f *InFlight) InUse() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inUse
}

func (f *InFlight) count(bytes int64) {
	f.mu.Lock()
	f.inUse += bytes
	f.mu.Unlock()
}

// tooLarge is the error of a payload that can never be taken.
func tooLarge(what string, limit, got int64, share string) error {
	return fmt.Errorf("%w, %s of max_in_flight: send smaller profiles, compressed, or raise max_in_flight and the memory of the collector",
		&pproftranslator.LimitError{What: what, Limit: limit, Got: got}, share)
}

// growBody makes the body of r hold this many bytes, unless that must wait. The rest that stays
// free is always enough for the largest body to become as large as a body may be. Bodies
// that wait for more can therefore not block each other. All other bodies leave 16 times
// their size free in addition, at most a sixteenth of the limit, for smaller ones.
func (f *InFlight) growBody(r *Reservation, bytes int64) (ok bool, freed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := f.bodies[r]
	if bytes > held {
		largest := int64(0)
		for _, other := range f.bodies {
			largest = max(largest, other)
		}
		room := f.size/4 - (f.maxBuffers() - max(largest, bytes))
		if held < largest {
			room -= min(16*bytes, f.size/16)
		}
		if f.used-held+bytes > room {
			return false, f.freed
		}
	} else if bytes < held {
		close(f.freed)
		f.freed = make(chan struct{})
	}
	f.used += bytes - held
	f.inUse += bytes - held
	if f.bodies[r] = bytes; bytes == 0 {
		delete(f.bodies, r)
	}
	return true, nil
}

// Reserve returns a reservation of 0 bytes that waits for others for at most this long
// in total. If wait is negative, it waits until the end of its context.
func (f *InFlight) Reserve(wait time.Duration) *Reservation {
	return &Reservation{limit: f, wait: wait}
}

// Baseline reserves bytes for a baseline in addition to those of payloads, until
// FreeBaseline. It fails if others hold them.
func (f *InFlight) Baseline(ctx context.Context, bytes int64) error {
	if !f.baselines.TryAcquire(bytes) {
		return ErrInFlightLimit
	}
	if err := f.work.Acquire(ctx, bytes); err != nil { // at most until payloads at work have finished
		f.baselines.Release(bytes)
		return err
	}
	f.count(bytes)
	return nil
}

// FreeBaseline returns the bytes of a baseline.
func (f *InFlight) FreeBaseline(bytes int64) {
	f.count(-bytes) // first, so that bytes that another takes are not counted twice
	f.work.Release(bytes)
	f.baselines.Release(bytes)
}

// Reservation is the part of the limit that one request, scrape or file holds: for its
// body, and for the work on it. It is not safe for concurrent use.
type Reservation struct {
	limit   *InFlight
	wait    time.Duration // total
	waited  time.Duration
	body    int64 // bytes of the body that Body does not touch
	granted int64 // bytes for work
	held    int64 // of these in use, including kept
	kept    int64 // bytes that Resize does not touch
	peak    int64 // largest value of held since Keep
}

// waiting returns the context of a wait, to end with a call of the function.
func (r *Reservation) waiting(ctx context.Context) (context.Context, func()) {
	if r.wait < 0 {
		return ctx, func() {}
	}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, r.wait-r.waited)
	return limited, func() {
		r.waited += time.Since(start)
		cancel()
	}
}

// waitError is the error of a wait that ended without success.
func waitError(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return ErrInFlightLimit
}

// Body makes the body hold this many bytes in addition to those kept, and may wait for
// them. After an error it is unchanged: a *pproftranslator.LimitError if a body can never
// take so much, ErrInFlightLimit, or that of ctx.
func (r *Reservation) Body(ctx context.Context, bytes int64) error {
	bytes += r.body
	if most := r.limit.maxBuffers(); bytes > most {
		return tooLarge("memory of the body in bytes", most, bytes, "an eighth")
	}
	ok, freed := r.limit.growBody(r, bytes)
	if ok {
		return nil
	}
	waiting, stop := r.waiting(ctx)
	defer stop()
	for !ok {
		select {
		case <-waiting.Done():
			return waitError(ctx)
		case <-freed:
		}
		ok, freed = r.limit.growBody(r, bytes)
	}
	return nil
}

// KeepBody retains the bytes of the body until FreeBody. Body then counts from 0 again.
func (r *Reservation) KeepBody() {
	r.limit.mu.Lock()
	defer r.limit.mu.Unlock()
	r.body = r.limit.bodies[r]
}

// FreeBody returns the bytes of the body.
func (r *Reservation) FreeBody() {
	r.limit.growBody(r, 0)
	r.body = 0
}

// Work waits for the bytes that do is expected to need, then calls it. If do needs more,
// its calls of Resize take the free bytes. If that is not enough, Work gives all back,
// waits for as much as one payload may have, and calls do again. So a payload never
// holds bytes while it waits for more, except its body. After an error nothing is held.
func (r *Reservation) Work(ctx context.Context, expected int64, do func() error) error {
	expected = min(expected, r.limit.MaxPayload())
	for {
		if err := r.grant(ctx, expected); err != nil {
			return err
		}
		err := do()
		if err == nil {
			r.release(r.held)
			return nil
		}
		r.release(0)
		if !errors.Is(err, errTaken) {
			return err
		}
		expected = r.limit.MaxPayload()
	}
}

func (r *Reservation) grant(ctx context.Context, bytes int64) error {
	if !r.limit.work.TryAcquire(bytes) {
		waiting, stop := r.waiting(ctx)
		defer stop()
		if r.limit.work.Acquire(waiting, bytes) != nil {
			return waitError(ctx)
		}
	}
	r.limit.count(bytes)
	r.granted = bytes
	return nil
}

// release returns the granted bytes beyond those that are to be held.
func (r *Reservation) release(held int64) {
	freed := r.granted - held
	r.granted, r.held, r.kept, r.peak = held, held, min(r.kept, held), held
	r.limit.count(-freed) // first, as in FreeBaseline
	r.limit.work.Release(freed)
}

// Keep retains all bytes held so far until the end of the work. Resize then counts from
// 0 again.
func (r *Reservation) Keep() { r.kept, r.peak = r.held, r.held }

// Resize makes the work hold this many bytes in addition to those kept. It does not
// wait. After an error the reservation is unchanged: a *pproftranslator.LimitError if
// one payload can never have so much; any other is for Work.
func (r *Reservation) Resize(bytes int64) error {
	bytes += r.kept
	if most := r.limit.MaxPayload(); bytes > most {
		return tooLarge("memory of the payload in bytes", most, bytes, "half")
	}
	if more := bytes - r.granted; more > 0 {
		if !r.limit.work.TryAcquire(more) {
			return errTaken
		}
		r.limit.count(more)
		r.granted = bytes
	}
	r.held, r.peak = bytes, max(r.peak, bytes)
	return nil
}

// Peak is the most bytes that the work has held since Keep, without those kept.
func (r *Reservation) Peak() int64 { return r.peak - r.kept }

// FreeWork returns the bytes of the work.
func (r *Reservation) FreeWork() { r.release(0) }

// Release returns all bytes. The reservation can be used again.
func (r *Reservation) Release() {
	r.FreeBody()
	r.FreeWork()
	r.waited = 0
}
