// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Shares of the memory limit, in eighths: each of the queries that run at once, what is known about
// files, and the profiles that pprof's pages show.
const (
	running       = 2
	queryEighths  = 3
	filesEighths  = 1
	mountsEighths = 1
)

const (
	maxWaiting = 64
	maxWait    = 5 * time.Second
)

// errBusy says that too many queries run or wait.
var errBusy = errors.New("other queries are running; retry in a few seconds")

// slots bound how many queries run and wait.
type slots struct {
	free    chan struct{}
	waiting atomic.Int64
	maxWait time.Duration
}

func newSlots(n int) *slots { return &slots{free: make(chan struct{}, n), maxWait: maxWait} }

// acquire waits for a slot. The caller calls release.
func (s *slots) acquire(ctx context.Context) (release func(), err error) {
	release = func() { <-s.free }
	select {
	case s.free <- struct{}{}:
		return release, nil
	default:
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > maxWaiting {
		return nil, errBusy
	}
	timer := time.NewTimer(s.maxWait)
	defer timer.Stop()
	select {
	case s.free <- struct{}{}:
		return release, nil
	case <-timer.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
