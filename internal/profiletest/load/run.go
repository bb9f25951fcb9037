// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package load pushes pprof profiles to a receiver from many clients and measures the
// responses.
package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options are the options of [Run].
type Options struct {
	// URL accepts profiles by POST, for example http://localhost:4040/v1/pprof.
	URL string
	// Bodies are sent in turn, again and again.
	Bodies []Body
	// Clients is the number of connections.
	Clients int
	// Rate is in profiles a second, of all clients together; 0 for as fast as possible.
	Rate float64
	// Duration of the run.
	Duration time.Duration
	// Services is the number of values of service.name, each with an instance of its own.
	Services int
	// Timeout of each request.
	Timeout time.Duration
}

// Result is the measurement of a run.
type Result struct {
	// Elapsed is from the first push to the last response.
	Elapsed time.Duration
	// Statuses counts the responses; 0 is for requests without one.
	Statuses map[int]int
	// Latencies of all responses, sorted. At a given rate they start when the push was
	// due, so that a push that is late because of a slow response is slow, too.
	Latencies []time.Duration
	// FirstError is the error of the first request without a response.
	FirstError error
}

// Accepted is the number of responses with a status of 2xx.
func (r *Result) Accepted() int {
	n := 0
	for status, count := range r.Statuses {
		if status/100 == 2 {
			n += count
		}
	}
	return n
}

// Percentile returns the latency that p percent of the responses do not exceed.
func (r *Result) Percentile(p float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(len(r.Latencies)-1, int(float64(len(r.Latencies))*p/100))]
}

// Run pushes until the duration is over or ctx is done, and waits for all responses.
func Run(ctx context.Context, o Options) (*Result, error) {
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: o.Clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: o.Timeout}
	result := &Result{Statuses: map[int]int{}}
	start := time.Now()
	var (
		next    atomic.Int64
		mu      sync.Mutex
		clients sync.WaitGroup
	)
	for range o.Clients {
		clients.Go(func() {
			for {
				i := next.Add(1) - 1
				due := time.Now()
				if o.Rate > 0 {
					due = start.Add(time.Duration(float64(i) / o.Rate * float64(time.Second)))
				}
				if due.Sub(start) >= o.Duration || !sleepUntil(ctx, due) {
					return
				}
				query, service := base.Query(), i%int64(o.Services)
				query.Set("service.name", fmt.Sprintf("load-%d", service))
				query.Set("service.instance.id", fmt.Sprint(service))
				target := *base
				target.RawQuery = query.Encode()
				status, err := push(ctx, client, target.String(), o.Bodies[i%int64(len(o.Bodies))].data)
				latency := time.Since(due)

				mu.Lock()
				result.Statuses[status]++
				if err != nil && result.FirstError == nil {
					result.FirstError = err
				}
				if err == nil {
					result.Latencies = append(result.Latencies, latency)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	result.Elapsed = time.Since(start)
	slices.Sort(result.Latencies)
	return result, nil
}

// sleepUntil reports whether the time came before ctx was done.
func sleepUntil(ctx context.Context, due time.Time) bool {
	if wait := time.Until(due); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// push returns the status of the response, or an error and 0.
func push(ctx context.Context, client *http.Client, target string, data []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return 0, err
	}
	return response.StatusCode, nil
}
