// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"
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
	free    *semaphore.Weighted
	maxWait time.Duration
}

func newSlots(n int64) *slots { return &slots{free: semaphore.NewWeighted(n), maxWait: maxWait} }

// acquire waits for a slot. The caller calls release.
func (s *slots) acquire(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxWait, errBusy)
	defer cancel()
	if s.free.Acquire(ctx, 1) != nil {
		return nil, context.Cause(ctx)
	}
	return func() { s.free.Release(1) }, nil
}
