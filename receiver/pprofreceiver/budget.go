// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
)

// errOverBudget: the bytes being worked on have reached max_in_flight, and
// stayed there for as long as a request may wait.
var errOverBudget = errors.New("too many bytes in flight, try again later")

// budget bounds the bytes that all requests hold at a time. Requests wait for
// each other in order of arrival, never longer than wait in all, so that requests
// that hold a part and wait for more cannot block each other for good.
type budget struct {
	size int64         // bytes
	wait time.Duration // how long one reservation may wait for others
	free *semaphore.Weighted
}

func newBudget(size int64, wait time.Duration) *budget {
	return &budget{size: size, wait: wait, free: semaphore.NewWeighted(size)}
}

// reservation is one request's part of the budget. It is not safe for
// concurrent use.
type reservation struct {
	budget *budget
	held   int64 // bytes, kept ones among them
	kept   int64 // bytes that resize leaves alone
	most   int64 // bytes it was at most since keep
	waited time.Duration
}

func (b *budget) reserve() *reservation {
	return &reservation{budget: b}
}

// keep makes what is held stay: the bytes of further resizes come on top of it.
func (r *reservation) keep() { r.kept, r.most = r.held, r.held }

// resize makes the reservation this many bytes, beside those that are kept, and
// may wait to do so. More than the whole budget counts as the whole budget: such a
// request runs alone. On an error, errOverBudget or that of ctx, the reservation
// is as it was.
func (r *reservation) resize(ctx context.Context, bytes int64) error {
	bytes = min(r.kept+bytes, r.budget.size)
	more := bytes - r.held
	switch {
	case more < 0:
		r.budget.free.Release(-more)
	case more > 0 && !r.budget.free.TryAcquire(more):
		waiting, cancel := context.WithTimeout(ctx, r.budget.wait-r.waited)
		defer cancel()
		start := time.Now()
		err := r.budget.free.Acquire(waiting, more)
		r.waited += time.Since(start)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errOverBudget
		}
	}
	r.held, r.most = bytes, max(r.most, bytes)
	return nil
}

// release gives everything back. The reservation can be used again.
func (r *reservation) release() {
	r.budget.free.Release(r.held)
	*r = reservation{budget: r.budget}
}
