// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrInFlightLimit means that other payloads hold the bytes that one needs, and have
// held them for as long as it may wait.
var ErrInFlightLimit = errors.New("max_in_flight reached; retry later")

// InFlight bounds the bytes that all payloads hold at a time. Reservations are served
// in order of arrival. Each waits at most a fixed time in total, so that those which
// hold some bytes and wait for more cannot block each other indefinitely.
type InFlight struct {
	size int64         // bytes
	wait time.Duration // total of one reservation
	free *semaphore.Weighted

	inUse atomic.Int64 // bytes
}

// NewInFlight returns a limit of so many bytes.
func NewInFlight(size int64, wait time.Duration) *InFlight {
	return &InFlight{size: size, wait: wait, free: semaphore.NewWeighted(size)}
}

// Reserve returns a reservation of 0 bytes.
func (f *InFlight) Reserve() *Reservation { return &Reservation{limit: f} }

// InUse is how many bytes all reservations hold.
func (f *InFlight) InUse() int64 { return f.inUse.Load() }

// Reservation is the part of the limit that one request holds. Keep and
// Resize of a nil Reservation do nothing; its other methods must not be called. It is
// not safe for concurrent use.
type Reservation struct {
	limit  *InFlight
	held   int64 // bytes, including kept
	kept   int64 // bytes that Resize does not touch
	peak   int64 // largest value of held since Keep
	waited time.Duration
}

// Keep retains all bytes held so far until Release. Resize then counts from 0 again.
func (r *Reservation) Keep() {
	if r != nil {
		r.kept, r.peak = r.held, r.held
	}
}

// Resize makes the reservation hold this many bytes in addition to those kept, and may
// wait for them. A request that needs more than the limit gets all of it and runs
// alone. After an error, ErrInFlightLimit or that of ctx, the reservation is unchanged.
func (r *Reservation) Resize(ctx context.Context, bytes int64) error {
	if r == nil {
		return nil
	}
	bytes = min(r.kept+bytes, r.limit.size)
	more := bytes - r.held
	switch {
	case more < 0:
		r.limit.free.Release(-more)
	case more > 0 && !r.limit.free.TryAcquire(more):
		waiting, cancel := context.WithTimeout(ctx, r.limit.wait-r.waited)
		defer cancel()
		start := time.Now()
		err := r.limit.free.Acquire(waiting, more)
		r.waited += time.Since(start)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return ErrInFlightLimit
		}
	}
	r.limit.inUse.Add(more)
	r.held, r.peak = bytes, max(r.peak, bytes)
	return nil
}

// Held is how many bytes the reservation holds, including those kept.
func (r *Reservation) Held() int64 { return r.held }

// Peak is the most bytes that the reservation has held since Keep, without those kept.
func (r *Reservation) Peak() int64 { return r.peak - r.kept }

// Release returns all bytes. The reservation can be used again.
func (r *Reservation) Release() {
	r.limit.free.Release(r.held)
	r.limit.inUse.Add(-r.held)
	*r = Reservation{limit: r.limit}
}
