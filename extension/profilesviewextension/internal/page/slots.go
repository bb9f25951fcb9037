// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"time"
)

// Shares of the memory limit, in eighths: each of the queries that run at once, the catalog of
// files, and the profiles that pprof's pages show.
const (
	running       = 2
	queryEighths  = 3
	filesEighths  = 1
	mountsEighths = 1
)

const (
	// maxRequests is how many requests may run, wait or send their response.
	maxRequests = 100
	maxWait     = 10 * time.Second
)

// errBusy says that too many queries run or wait.
var errBusy = errors.New("other queries are running; retry in a few seconds")

// slots bound how many queries run.
type slots struct {
	free    chan struct{}
	maxWait time.Duration
}

func newSlots(n int) *slots { return &slots{free: make(chan struct{}, n), maxWait: maxWait} }

// acquire waits for a slot. The caller calls release.
func (s *slots) acquire(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxWait, errBusy)
	defer cancel()
	select {
	case s.free <- struct{}{}:
		return func() { <-s.free }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
