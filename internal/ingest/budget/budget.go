// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package budget bounds the memory of the payloads that receivers hold: whoever holds one has it counted here.
//
// A Budget has two pools. A quarter is for bodies that are still arriving, or wait for work. The rest is for work: what is
// decompressed, the translation, and its result until the next consumer has answered, or has called Merged.
//
// Leases cannot block each other. A lease waits for work only while it holds none (Within), and for a body only while
// it holds nothing. Later growth takes what is free, or fails.
package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// ErrFull means that others hold the bytes that a payload needs, and have held them for as long as it may wait.
var ErrFull = errors.New("max_in_flight reached; retry later")

// TooLargeError means that a payload needs more than it can ever get.
type TooLargeError struct {
	What              string // the bytes are for
	Needed, Available int64  // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d bytes are needed, max_in_flight has %d: "+
		"send smaller profiles, compressed, or raise max_in_flight and the memory of the Collector", e.What, e.Needed, e.Available)
}

// shortError is ErrFull for a lease that would get the bytes if it waited for them.
type shortError struct{ needed int64 } // bytes of work in total

func (*shortError) Error() string { return ErrFull.Error() }
func (*shortError) Unwrap() error { return ErrFull }

// Budget bounds the bytes of all leases. It is safe for concurrent use.
type Budget struct {
	mu           sync.Mutex
	bodies, work pool
	baselines    int64 // bytes of work that baselines hold
}

// pool is a number of bytes of which parts are taken. Those who wait for some get them in turn.
type pool struct {
	size, used int64
	waiters    []*waiter
}

type waiter struct {
	bytes int64
	ready chan error // has room for the answer; nil means that the bytes are taken
}

// New returns a budget of so many bytes.
func New(size int64) *Budget {
	return &Budget{bodies: pool{size: size / 4}, work: pool{size: size - size/4}}
}

// Shared is one budget of several receivers. Without it, each receiver that receiver_creator starts would have a share of the
// memory of its own. The zero value is ready to use.
type Shared struct {
	mu     sync.Mutex
	budget *Budget
}

// AtLeast returns the budget. It has the most bytes that any receiver has asked for.
func (s *Shared) AtLeast(size int64) *Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.budget == nil {
		s.budget = New(size)
	}
	s.budget.grow(size)
	return s.budget
}

// grow makes the pools those of New(size), if that is more than there is.
func (b *Budget) grow(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size <= b.bodies.size+b.work.size {
		return
	}
	b.bodies.size, b.work.size = size/4, size-size/4
	b.freeBody(0) // some may wait for what there is now
	b.freeWork(0)
}

// InUse is how many bytes are taken.
func (b *Budget) InUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bodies.used + b.work.used
}

// The following are called with mu held.

func (b *Budget) maxWork() int64 { return b.work.size - b.baselines }

func (b *Budget) checkWork(needed int64) error {
	if available := b.maxWork(); needed > available {
		return &TooLargeError{What: "memory of the profiles", Needed: needed, Available: available}
	}
	return nil
}

// bodyFits reports whether a body may have so many bytes more. It leaves as many free, so that large bodies
// that stall leave room for smaller ones.
func (b *Budget) bodyFits(bytes int64) bool { return bytes <= b.bodies.size-b.bodies.used-bytes }

func (b *Budget) workFits(bytes int64) bool { return b.work.used+bytes <= b.work.size }

// freeBody and freeWork return bytes to a pool, and give them to those who wait.
func (b *Budget) freeBody(bytes int64) {
	b.bodies.used -= bytes
	b.bodies.serve(b.bodyFits, func(int64) error { return nil })
}

func (b *Budget) freeWork(bytes int64) {
	b.work.used -= bytes
	b.work.serve(b.workFits, b.checkWork)
}

// serve answers those who wait, up to the first one whose bytes are not free. check says who waits in vain.
func (p *pool) serve(fits func(bytes int64) bool, check func(bytes int64) error) {
	for len(p.waiters) > 0 {
		first := p.waiters[0]
		err := check(first.bytes)
		if err == nil && !fits(first.bytes) {
			return
		}
		if err == nil {
			p.used += first.bytes
		}
		first.ready <- err
		p.waiters = p.waiters[1:]
	}
}

// await waits at most so long, if that is not negative, until bytes of a pool are taken. It is called without mu.
func (b *Budget) await(ctx context.Context, p *pool, bytes int64, wait time.Duration, fits func(int64) bool) error {
	b.mu.Lock()
	if len(p.waiters) == 0 && fits(bytes) {
		p.used += bytes
		b.mu.Unlock()
		return nil
	}
	w := &waiter{bytes, make(chan error, 1)}
	p.waiters = append(p.waiters, w)
	b.mu.Unlock()
	var timeout <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		timeout = timer.C
	}
	err := ErrFull
	select {
	case err := <-w.ready:
		return err
	case <-timeout:
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(p.waiters, w); i >= 0 {
		p.waiters = slices.Delete(p.waiters, i, i+1)
		b.freeBody(0) // it may have kept others waiting
		b.freeWork(0)
		return err
	}
	return <-w.ready // just now
}
