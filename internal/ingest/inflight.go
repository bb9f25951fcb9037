// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// ErrInFlightLimit means that other payloads hold the bytes that one needs, and have
// held them for as long as it may wait.
var ErrInFlightLimit = errors.New("max_in_flight reached; retry later")

// InFlight bounds the bytes that all payloads of the receivers that share it hold at a time, in
// all their sections. Each stage of a payload has a part of the limit of its own, in thirty-seconds:
//
//	 1  small bodies as sent, of at most a thousandth of the limit
//	 4  other bodies as sent: one may have 2
//	 5  decompressed payloads
//	22  work: the translation and its result. One request, scrape or file may have 14, and all baselines 8.
//
// A payload takes what a stage needs before the stage begins. If it may wait without end, it waits only for a stage after
// those for which it holds bytes; what turns out to be more than expected is taken if it is free. So payloads cannot
// block each other, and there is always room for one more when those at work have finished.
type InFlight struct {
	parts     [stages]*semaphore.Weighted
	most      [stages]limit // of one payload
	baselines *semaphore.Weighted
	inUse     atomic.Int64 // bytes of everything
}

// Stage is what a payload holds bytes for.
type Stage int

const (
	smallBody    Stage = iota
	body               // TakeBody decides which
	Decompressed       // what is made of a body before the work on it
	Work
	stages
)

// limit is how many bytes one payload may hold in a stage, and how that is said.
type limit struct {
	bytes       int64
	what, share string
}

// NewInFlight returns a limit of so many bytes.
func NewInFlight(size int64) *InFlight {
	f := &InFlight{baselines: semaphore.NewWeighted(size / 4)}
	for stage, parts := range [stages]int64{smallBody: 1, body: 4, Decompressed: 5, Work: 22} {
		f.parts[stage] = semaphore.NewWeighted(size / 32 * parts)
	}
	f.most = [stages]limit{
		smallBody:    {size / 1024, "size of the body in bytes", "a thousandth"},
		body:         {size / 32 * 2, "size of the body in bytes", "a sixteenth"},
		Decompressed: {size / 32 * 5, "memory of the decompressed payload in bytes", "five thirty-seconds"},
		Work:         {size / 32 * 14, "memory of the payload in bytes", "seven sixteenths"},
	}
	return f
}

// MaxWork is how many bytes one request, scrape or file may take for its translation and the result.
func (f *InFlight) MaxWork() int64 { return f.most[Work].bytes }

// check returns the error of a payload that can never be taken.
func (l *limit) check(bytes int64) error {
	if bytes <= l.bytes {
		return nil
	}
	return fmt.Errorf("%w, %s of max_in_flight: send smaller profiles, compressed, or raise max_in_flight and the memory of the collector",
		&pproftranslator.LimitError{What: l.what, Limit: l.bytes, Got: bytes}, l.share)
}

// InUse is how many bytes are reserved.
func (f *InFlight) InUse() int64 { return f.inUse.Load() }

// Reserve returns a reservation of 0 bytes that waits for others for at most this long
// in total. If wait is negative, it waits until the end of its context.
func (f *InFlight) Reserve(wait time.Duration) *Reservation {
	return &Reservation{limit: f, wait: wait, left: wait}
}

// Baseline reserves bytes for a baseline in addition to those of payloads, until
// FreeBaseline. It fails if others hold them.
func (f *InFlight) Baseline(ctx context.Context, bytes int64) error {
	if !f.baselines.TryAcquire(bytes) {
		return ErrInFlightLimit
	}
	if err := f.parts[Work].Acquire(ctx, bytes); err != nil { // at most until payloads at work have finished
		f.baselines.Release(bytes)
		return err
	}
	f.inUse.Add(bytes)
	return nil
}

// FreeBaseline returns the bytes of a baseline.
func (f *InFlight) FreeBaseline(bytes int64) {
	f.inUse.Add(-bytes) // first, so that bytes that another takes are not counted twice
	f.parts[Work].Release(bytes)
	f.baselines.Release(bytes)
}

// Reservation is the part of the limit that one request, scrape or file holds. It is not safe for concurrent use.
type Reservation struct {
	limit      *InFlight
	wait, left time.Duration // in total, and what is left of that
	held       [stages]int64 // bytes
}

// Take makes a stage hold so many more bytes, and waits for them. After an error nothing has changed: a
// *pproftranslator.LimitError if one payload can never hold so much, ErrInFlightLimit, or that of ctx.
func (r *Reservation) Take(ctx context.Context, stage Stage, bytes int64) error {
	err := r.TryTake(stage, bytes)
	if !errors.Is(err, ErrInFlightLimit) {
		return err
	}
	waiting := ctx
	if r.wait >= 0 {
		start := time.Now()
		limited, cancel := context.WithTimeout(ctx, r.left)
		defer func() {
			r.left -= time.Since(start)
			cancel()
		}()
		waiting = limited
	}
	if r.limit.parts[stage].Acquire(waiting, bytes) != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return ErrInFlightLimit
	}
	r.held[stage] += bytes
	r.limit.inUse.Add(bytes)
	return nil
}

// TryTake is Take without waiting: it is for more than was expected.
func (r *Reservation) TryTake(stage Stage, bytes int64) error {
	if bytes == 0 { // a semaphore gives nothing while others wait
		return nil
	}
	if err := r.limit.most[stage].check(r.held[stage] + bytes); err != nil {
		return err
	}
	if !r.limit.parts[stage].TryAcquire(bytes) {
		return ErrInFlightLimit
	}
	r.held[stage] += bytes
	r.limit.inUse.Add(bytes)
	return nil
}

// resize makes a stage hold so many bytes. It does not wait.
func (r *Reservation) resize(stage Stage, bytes int64) error {
	if more := bytes - r.held[stage]; more > 0 {
		return r.TryTake(stage, more)
	}
	r.Shrink(stage, bytes)
	return nil
}

// Shrink makes a stage hold no more than so many bytes.
func (r *Reservation) Shrink(stage Stage, bytes int64) {
	if freed := r.held[stage] - bytes; freed > 0 {
		r.held[stage] = bytes
		r.limit.inUse.Add(-freed) // first, as in FreeBaseline
		r.limit.parts[stage].Release(freed)
	}
}

// TakeBody takes the bytes of a body. One of at most a thousandth of the limit is small: it need not wait for large ones.
func (r *Reservation) TakeBody(ctx context.Context, bytes int64) error {
	if bytes <= r.limit.most[smallBody].bytes {
		return r.Take(ctx, smallBody, bytes)
	}
	return r.Take(ctx, body, bytes)
}

// TakeWork takes bytes for work until the call of the function.
func (r *Reservation) TakeWork(ctx context.Context, bytes int64) (free func(), err error) {
	if err := r.Take(ctx, Work, bytes); err != nil {
		return func() {}, err
	}
	return func() { r.Shrink(Work, r.held[Work]-bytes) }, nil
}

// FreeBody returns the bytes of the body and of what was decompressed.
func (r *Reservation) FreeBody() {
	for _, stage := range []Stage{smallBody, body, Decompressed} {
		r.Shrink(stage, 0)
	}
}

// Release returns all bytes. The reservation can be used again.
func (r *Reservation) Release() {
	r.FreeBody()
	r.Shrink(Work, 0)
	r.left = r.wait
}
