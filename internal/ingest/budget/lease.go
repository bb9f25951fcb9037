// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"errors"
	"time"
)

// Lease is what one request, scrape or file holds of a Budget. Its owner uses it from one goroutine; Merged may be called
// from any.
type Lease struct {
	budget     *Budget
	wait, left time.Duration // that it may wait in total, without end if negative, and what is left of that

	// The following are guarded by budget.mu.
	body   int64
	used   int64 // bytes of work that have been taken and not freed
	held   int64 // bytes of work of the pool, at least used; the rest was reserved for the running attempt
	within bool  // an attempt is running
}

// Lease returns a lease of 0 bytes that waits for others for at most this long in total. If wait is negative, it waits until
// the end of its context, also for a body.
func (b *Budget) Lease(wait time.Duration) *Lease { return &Lease{budget: b, wait: wait, left: wait} }

// TakeBody takes bytes for a body that arrives, at most half of what is free. It waits only if the lease holds nothing and
// waits without end.
func (l *Lease) TakeBody(ctx context.Context, bytes int64) error {
	b := l.budget
	b.mu.Lock()
	largest, needed, empty := b.bodies.size/2, l.body+bytes, l.body+l.held == 0
	switch {
	case needed > largest:
		b.mu.Unlock()
		return &TooLargeError{What: "body", Needed: needed, Available: largest}
	case l.wait < 0 && empty:
		b.mu.Unlock()
		if err := b.await(ctx, &b.bodies, bytes, l.wait, b.bodyFits); err != nil {
			return err
		}
		b.mu.Lock()
	case !b.bodyFits(bytes):
		b.mu.Unlock()
		return ErrFull
	default:
		b.bodies.used += bytes
	}
	l.body = needed
	b.mu.Unlock()
	return nil
}

// ShrinkBody makes the body hold no more than so many bytes.
func (l *Lease) ShrinkBody(bytes int64) {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if freed := l.body - bytes; freed > 0 {
		l.body = bytes
		l.budget.freeBody(freed)
	}
}

// FirstBody is how many bytes to take for a body of unknown length: few for one that may not wait for more later, otherwise
// as many as most need.
func (l *Lease) FirstBody() int64 {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if l.wait < 0 {
		return l.budget.bodies.size / 4
	}
	return l.budget.bodies.size / 256
}

// Within calls attempt. If that ends because others hold bytes of work that it needs, Within frees all work of the lease, waits
// until these bytes are reserved, and calls attempt again. The lease must hold no work before.
func (l *Lease) Within(ctx context.Context, attempt func() error) error {
	l.within = true
	defer func() {
		l.within = false
		l.Free(0) // what was reserved in vain
	}()
	for {
		err := attempt()
		short, isShort := errors.AsType[*shortError](err)
		if !isShort {
			return err
		}
		l.freeAll()
		start := time.Now()
		err = l.budget.await(ctx, &l.budget.work, short.needed, l.left, l.budget.workFits)
		if l.wait >= 0 {
			l.left = max(l.left-time.Since(start), 0)
		}
		if err != nil {
			return err
		}
		l.budget.mu.Lock()
		l.held = short.needed
		l.budget.mu.Unlock()
	}
}

// Reserve makes sure that so many bytes of work can be taken until the end of the attempt. The error is a *TooLargeError or wraps
// ErrFull; then nothing has changed.
func (l *Lease) Reserve(bytes int64) error {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	return l.reserve(bytes)
}

// Take takes bytes for work that are free or reserved, with the errors of Reserve.
func (l *Lease) Take(bytes int64) error {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	if err := l.reserve(bytes); err != nil {
		return err
	}
	l.used += bytes
	return nil
}

func (l *Lease) reserve(bytes int64) error {
	b, needed := l.budget, l.used+bytes
	more := needed - l.held
	if more <= 0 {
		return nil
	}
	if err := b.checkWork(needed); err != nil {
		return err
	}
	if !b.workFits(more) || l.held == 0 && len(b.work.waiters) > 0 { // a new one does not overtake those who wait
		return &shortError{needed}
	}
	b.work.used += more
	l.held = needed
	return nil
}

// MaxWork is how many bytes of work one lease may have: all that baselines do not hold.
func (l *Lease) MaxWork() int64 {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	return l.budget.maxWork()
}

// Used is how many bytes the lease has taken for work.
func (l *Lease) Used() int64 {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	return l.used
}

// Free returns bytes of work.
func (l *Lease) Free(bytes int64) {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	l.free(bytes)
}

func (l *Lease) free(bytes int64) {
	l.used = max(l.used-bytes, 0)
	if unused := l.held - l.used; unused > 0 && !l.within {
		l.held = l.used
		l.budget.freeWork(unused)
	}
}

func (l *Lease) freeAll() {
	l.budget.mu.Lock()
	defer l.budget.mu.Unlock()
	all := l.held
	l.used, l.held = 0, 0
	l.budget.freeWork(all)
}

// Release returns all bytes. The lease can be used again.
func (l *Lease) Release() {
	l.ShrinkBody(0)
	l.freeAll()
	l.left = l.wait
}

// KeepBaseline makes bytes that the lease has taken for work those of a baseline, until FreeBaseline. It reports whether there is
// room: all baselines take at most a quarter of the budget.
func (l *Lease) KeepBaseline(bytes int64) bool {
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.baselines+bytes > (b.work.size+b.bodies.size)/4 {
		return false
	}
	b.baselines += bytes
	l.used -= bytes
	l.held -= bytes
	b.freeWork(0) // some may wait for more than there is now
	return true
}

// FreeBaseline returns the bytes of a baseline.
func (b *Budget) FreeBaseline(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.baselines -= bytes
	b.freeWork(bytes)
}
