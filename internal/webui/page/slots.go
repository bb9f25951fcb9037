// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Shares of the memory limit, in eighths: each of the queries that run at once, the catalog of files, and responses that clients have not
// read. The cache of an object store takes its share from the queries.
const (
	running          = 2
	queryEighths     = 3
	filesEighths     = 1
	responsesEighths = 1
	objectsEighths   = 2
)

const (
	// maxRequests is how many requests may run, wait or send their response.
	maxRequests = 100
	maxWait     = 10 * time.Second
)

// errBusy says that too many queries run or wait, or that clients do not read their responses.
var errBusy = errors.New("other queries are running; retry in a few seconds")

// slots bound how many queries run, or how many bytes responses take.
type slots struct {
	free    *semaphore.Weighted
	all     int64
	maxWait time.Duration
	used    atomic.Int64
}

func newSlots(n int64) *slots {
	return &slots{free: semaphore.NewWeighted(n), all: n, maxWait: maxWait}
}

// acquire waits for n slots, or for all if there are fewer. The caller calls release.
func (s *slots) acquire(ctx context.Context, n int64) (release func(), err error) {
	n = min(n, s.all)
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxWait, errBusy)
	defer cancel()
	if s.free.Acquire(ctx, n) != nil {
		return nil, context.Cause(ctx)
	}
	s.used.Add(n)
	return func() {
		s.used.Add(-n)
		s.free.Release(n)
	}, nil
}

// response holds a response until it is complete.
type response struct {
	bytes.Buffer // the body

	status int // 0 if none was set
	header http.Header
}

// Header returns the header of the response.
func (r *response) Header() http.Header { return r.header }

// WriteHeader sets the status.
func (r *response) WriteHeader(status int) { r.status = status }

// send writes the response to a client.
func (r *response) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(cmp.Or(r.status, http.StatusOK))
	// #nosec G705 -- html/template has escaped it
	_, _ = w.Write(r.Bytes()) // an error is that of the client's connection
}
