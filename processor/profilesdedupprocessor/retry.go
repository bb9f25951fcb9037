// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"slices"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

// drainBackoff bounds the time between attempts during shutdown.
const drainBackoff = 200 * time.Millisecond

// retry is a payload that the next consumer did not accept yet, as OTLP protobuf: that takes less
// memory than its window, and the next consumer may change a payload that it is given.
type retry struct {
	part    *partition
	message []byte
	backoff backoff.ExponentialBackOff
	first   time.Time     // when the first attempt failed
	last    time.Time     // when the last attempt failed
	wait    time.Duration // from last to the next
	err     error         // of the last attempt
}

// queueRetry puts a partition, whose first attempt failed with err, into the retry queue.
func (e *exporter) queueRetry(part *partition, err error) {
	cfg := e.p.cfg.RetryOnFailure
	r := &retry{part: part, first: time.Now(), backoff: backoff.ExponentialBackOff{
		InitialInterval:     cfg.InitialInterval,
		RandomizationFactor: cfg.RandomizationFactor,
		Multiplier:          cfg.Multiplier,
		MaxInterval:         cfg.MaxInterval,
	}}
	if e.schedule(r, err) && e.setPayload(r, err) {
		e.retries = append(e.retries, r)
		e.updateRetrySize()
	}
}

// schedule plans the next attempt of r after err, or drops r if there is none.
func (e *exporter) schedule(r *retry, err error) bool {
	cfg := e.p.cfg.RetryOnFailure
	r.last, r.wait, r.err = time.Now(), r.backoff.NextBackOff(), err
	switch {
	case e.ctx.Err() != nil:
		e.drop(r.part, reasonShutdown, err)
		return false
	case !cfg.Enabled || cfg.MaxElapsedTime > 0 && r.last.Sub(r.first) >= cfg.MaxElapsedTime:
		e.drop(r.part, reasonRetriesExhausted, err)
		return false
	}
	e.p.logger.Warn("Export failed; retrying", append(e.p.splitFields(r.part), zap.Error(err), zap.Duration("retry_after", r.wait))...)
	return true
}

// setPayload sets what the next attempt of r after err sends: the Profiles that the next consumer did
// not accept. It drops r if that fails.
func (e *exporter) setPayload(r *retry, err error) bool {
	rest, partial := partialerror.Profiles(err)
	if !partial && r.message != nil {
		return true
	}
	if !partial {
		if rest, err = e.p.emit(r.part); err != nil {
			e.drop(r.part, dropReason(err), err)
			return false
		}
	}
	own := pprofile.NewProfiles() // marshaling changes it
	rest.CopyTo(own)
	if r.message, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(own); err != nil {
		e.drop(r.part, reasonPermanent, err)
		return false
	}
	return true
}

// updateRetrySize measures the retry queue after a change. If it has become smaller, an overdue
// window may have room.
func (e *exporter) updateRetrySize() {
	const entrySize = 256 // an estimate
	size := 0
	for _, r := range e.retries {
		size += entrySize + len(r.message) + len(merge.Key{})*cap(r.part.keys)
	}
	p := e.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retrySize = size
	p.closeOverdue()
	p.updateRetainedMetric()
}

// nextRetry returns the retry that is due first, if there is one, and the time until then.
func (e *exporter) nextRetry(stopping bool) (next *retry, wait time.Duration) {
	var first time.Time
	for _, r := range e.retries {
		after := r.wait
		if stopping {
			after = min(after, drainBackoff)
		}
		if due := r.last.Add(after); next == nil || due.Before(first) {
			next, first = r, due
		}
	}
	return next, time.Until(first)
}

// retry sends r again.
func (e *exporter) retry(r *retry) {
	e.p.telemetry.retried()
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(r.message)
	if err != nil {
		err = consumererror.NewPermanent(err)
	} else {
		err = e.send(r.part, pd)
	}
	retryAgain := !e.resolve(r.part, err) && e.schedule(r, err) && e.setPayload(r, err)
	e.retries = slices.DeleteFunc(e.retries, func(other *retry) bool { return other == r && !retryAgain })
	e.updateRetrySize()
}

// dropRetries drops payloads that will not be sent again: everything if the time for shutdown has ended
// and, with on_flush, retries that no caller waits for. Those callers have retried or will. It does
// not drop the rest of a payload: a retry would send the accepted part again.
func (e *exporter) dropRetries() {
	before := len(e.retries)
	e.retries = slices.DeleteFunc(e.retries, func(r *retry) bool {
		if e.ctx.Err() != nil {
			e.drop(r.part, reasonShutdown, r.err)
			return true
		}
		return e.p.cfg.Acknowledge == acknowledgeOnFlush && !r.part.partial && e.p.dropAbandoned(r.part, r.err)
	})
	if len(e.retries) < before {
		e.updateRetrySize()
	}
}
