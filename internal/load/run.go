// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

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

// Options say what is pushed where, and how fast.
type Options struct {
	// URL takes the profiles by POST, as http://localhost:4040/v1/pprof.
	URL string
	// Bodies are sent one after the other, and again from the first.
	Bodies []Body
	// Clients is how many connections push at the same time.
	Clients int
	// Rate is in profiles a second, of all clients together; 0 for as fast as they are
	// answered.
	Rate float64
	// Duration is how long it goes on.
	Duration time.Duration
	// Services is how many values service.name takes, each with an instance of its own.
	Services int
	// Timeout of each request.
	Timeout time.Duration
}

// Result is what was measured.
type Result struct {
	// Elapsed is from the first push to the last answer.
	Elapsed time.Duration
	// Statuses counts answers; 0 is for requests without one.
	Statuses map[int]int
	// Bytes and PprofBytes were sent and accepted, as they were sent, and without
	// compression.
	Bytes, PprofBytes int64
	// Latencies of all pushes with an answer, sorted. At a given rate they count from
	// when the push was due, so that what waits behind a slow answer is slow, too.
	Latencies []time.Duration
	// FirstError is of the first request without an answer, if there was one.
	FirstError error
}

// Accepted is how many pushes were answered with 2xx.
func (r *Result) Accepted() int {
	n := 0
	for status, count := range r.Statuses {
		if status/100 == 2 {
			n += count
		}
	}
	return n
}

// Percentile returns the latency that p percent of the answers are within.
func (r *Result) Percentile(p float64) time.Duration {
	if len(r.Latencies) == 0 {
		return 0
	}
	return r.Latencies[min(len(r.Latencies)-1, int(float64(len(r.Latencies))*p/100))]
}

// Run pushes until the duration is over or ctx is done, and waits for all answers.
func Run(ctx context.Context, o Options) (*Result, error) {
	switch {
	case len(o.Bodies) == 0:
		return nil, errors.New("no profiles to push")
	case o.Clients < 1 || o.Services < 1 || o.Rate < 0 || o.Duration <= 0 || o.Timeout <= 0:
		return nil, fmt.Errorf("%d clients, %d services, %g profiles a second, for %v, timeout %v: want 1 or more, 1 or more, 0 or more, and times over 0", o.Clients, o.Services, o.Rate, o.Duration, o.Timeout)
	}
	base, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("URL %q: want one of http or https, as http://localhost:4040/v1/pprof", o.URL)
	}
	targets := make([]string, o.Services)
	for i := range targets {
		query := base.Query()
		query.Set("service.name", fmt.Sprintf("load-%d", i))
		query.Set("service.instance.id", fmt.Sprint(i))
		target := *base
		target.RawQuery = query.Encode()
		targets[i] = target.String()
	}

	transport := &http.Transport{MaxIdleConnsPerHost: o.Clients, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: o.Timeout}
	begin := time.Now()
	end := begin.Add(o.Duration)
	var (
		next    atomic.Int64
		mu      sync.Mutex
		result  = &Result{Statuses: map[int]int{}}
		clients sync.WaitGroup
	)
	for range o.Clients {
		clients.Go(func() {
			var mine Result
			mine.Statuses = map[int]int{}
			for {
				i := next.Add(1) - 1
				due := time.Now()
				if o.Rate > 0 {
					due = begin.Add(time.Duration(float64(i) / o.Rate * float64(time.Second)))
				}
				if !due.Before(end) || !sleepUntil(ctx, due) {
					break
				}
				mine.push(ctx, client, targets[i%int64(len(targets))], o.Bodies[i%int64(len(o.Bodies))], begin.UnixNano()+i, due)
			}
			mu.Lock()
			defer mu.Unlock()
			result.add(&mine)
		})
	}
	clients.Wait()
	result.Elapsed = time.Since(begin)
	slices.Sort(result.Latencies)
	return result, nil
}

// sleepUntil says whether the time came before ctx was done.
func sleepUntil(ctx context.Context, due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Result) push(ctx context.Context, client *http.Client, target string, body Body, nanos int64, due time.Time) {
	data := body.at(nanos)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		r.fail(err)
		return
	}
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := client.Do(request)
	if err != nil {
		r.fail(err)
		return
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		r.fail(err)
		return
	}
	r.Latencies = append(r.Latencies, time.Since(due))
	r.Statuses[response.StatusCode]++
	if response.StatusCode/100 == 2 {
		r.Bytes += int64(len(data))
		r.PprofBytes += int64(body.PprofSize)
	}
}

func (r *Result) fail(err error) {
	r.Statuses[0]++
	if r.FirstError == nil {
		r.FirstError = err
	}
}

func (r *Result) add(o *Result) {
	for status, n := range o.Statuses {
		r.Statuses[status] += n
	}
	r.Bytes += o.Bytes
	r.PprofBytes += o.PprofBytes
	r.Latencies = append(r.Latencies, o.Latencies...)
	if r.FirstError == nil {
		r.FirstError = o.FirstError
	}
}
