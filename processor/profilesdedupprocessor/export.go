// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

// patience is how long a canceled call of the next consumer may take without a warning and, if the
// Collector's shutdown deadline has passed, at all.
const patience = time.Second

// exporter sends pending windows, and payloads from the retry queue, to the next consumer, in a
// goroutine of its own.
type exporter struct {
	p       *dedupProcessor
	wake    chan struct{} // signals the goroutine that pending, stopping or waiters have changed
	stopped chan struct{} // closed when the goroutine has ended; nil unless it was started
	ctx     context.Context
	cancel  context.CancelFunc // ends the shutdown timeout

	retries []*retry // used only by the goroutine
	lost    int      // partitions with acknowledged payloads, dropped during shutdown; valid once stopped is closed
}

func newExporter(p *dedupProcessor) *exporter {
	e := &exporter{p: p, wake: make(chan struct{}, 1)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

func (e *exporter) start() {
	e.stopped = make(chan struct{})
	go e.run()
}

// run sends partitions, and retries when that is due, until the processor stops and nothing is left.
func (e *exporter) run() {
	defer close(e.stopped)
	for {
		part, stopping := e.p.nextPartition()
		if part != nil {
			e.sendPartition(part)
			continue
		}
		e.dropRetries()
		if stopping && len(e.retries) == 0 {
			return
		}
		r, wait := e.nextRetry(stopping)
		if r != nil && wait <= 0 {
			e.retry(r) // one, as a pending window goes before the next
			continue
		}
		e.sleep(r != nil, wait)
	}
}

// sleep waits for a wake-up and, if timed, not longer than wait.
func (e *exporter) sleep(timed bool, wait time.Duration) {
	var due <-chan time.Time
	if timed {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-e.wake:
	case <-e.ctx.Done():
	}
}

// wakeUp ends the sleep of the goroutine, or its next one.
func (e *exporter) wakeUp() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// sendPartition sends a partition for the first time. If the next consumer does not accept it
// yet, it goes to the retry queue.
func (e *exporter) sendPartition(part *partition) {
	if err := e.ctx.Err(); err != nil {
		e.drop(part, reasonShutdown, err)
		return
	}
	pd, err := e.p.emit(part)
	if err == nil {
		e.p.telemetry.empty(part.window.merged.PartitionCounts(part.key).Empty)
		err = e.send(part, pd)
	}
	if !e.resolve(part, err) {
		e.queueRetry(part, err)
	}
}

// send outlives panics of the next consumer.
func (e *exporter) send(part *partition, pd pprofile.Profiles) (err error) {
	defer e.p.recoverTo(&err, errNextPanicked)
	return e.p.send(e.ctx, part, pd)
}

// resolve completes a partition that the next consumer accepted, or drops it after a permanent
// error. It returns false if the partition is to be retried.
func (e *exporter) resolve(part *partition, err error) bool {
	switch {
	case err == nil:
		e.p.complete(part, nil)
	case partialerror.IsPermanent(err):
		e.drop(part, dropReason(err), err)
	default:
		return false
	}
	return true
}

// drop completes a partition that will not be sent again.
func (e *exporter) drop(part *partition, why reason, err error) {
	if e.p.cfg.Acknowledge == acknowledgeOnReceive && why == reasonShutdown {
		e.lost++
	}
	e.p.complete(part, err)
	e.p.reportDropped(part, why, err)
}

// shutdown waits until everything is sent, at most for timeout or until ctx ends. Then it cancels
// the call of the next consumer and drops the rest. It does not return before the next consumer
// has, unless ctx ends: the Collector shuts down the next consumer after it.
func (e *exporter) shutdown(ctx context.Context, timeout time.Duration) error {
	defer e.cancel()
	if e.stopped == nil {
		return nil
	}
	e.wakeUp()

	limit := "the Collector's shutdown deadline"
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-e.stopped:
	case <-limited.Done():
		if ctx.Err() == nil {
			limit = fmt.Sprintf("shutdown_timeout (%v)", timeout)
		}
		e.cancel()
		if !e.awaitStopped(ctx) {
			return fmt.Errorf("profiles_dedup: next consumer did not return within %s and is still running", limit)
		}
	}
	if e.lost > 0 {
		return fmt.Errorf("profiles_dedup: dropped %d payloads that the next consumer did not accept within %s", e.lost, limit)
	}
	return nil
}

// awaitStopped waits until the goroutine has ended. It returns false if ctx ended before, and
// patience has passed.
func (e *exporter) awaitStopped(ctx context.Context) bool {
	select {
	case <-e.stopped:
		return true
	case <-time.After(patience):
	}
	e.p.logger.Warn("Waiting for the next consumer to return")
	select {
	case <-e.stopped:
		return true
	case <-ctx.Done():
		return false
	}
}
