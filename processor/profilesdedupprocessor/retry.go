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
func (p *dedupProcessor) queueRetry(part *partition, err error) {
	cfg := p.cfg.RetryOnFailure
	r := &retry{part: part, first: time.Now(), backoff: backoff.ExponentialBackOff{
		InitialInterval:     cfg.InitialInterval,
		RandomizationFactor: cfg.RandomizationFactor,
		Multiplier:          cfg.Multiplier,
		MaxInterval:         cfg.MaxInterval,
	}}
	if !p.schedule(r, err) {
		return
	}
	pd, partial := partialerror.Profiles(err)
	if !partial {
		pd, err = p.emit(part)
	}
	if err != nil && !partial {
		p.drop(part, dropReason(err), err)
		return
	}
	if err := r.setPayload(pd); err != nil {
		p.drop(part, reasonPermanent, err)
		return
	}
	p.retries = append(p.retries, r)
	p.addRetrySize(r.size())
}

// setPayload sets the payload to send next.
func (r *retry) setPayload(pd pprofile.Profiles) (err error) {
	own := pprofile.NewProfiles() // marshaling changes it
	pd.CopyTo(own)
	r.message, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(own)
	return err
}

// size returns an estimate of the bytes that r retains.
func (r *retry) size() int {
	const entrySize = 256
	return entrySize + len(r.message) + len(merge.Key{})*cap(r.part.keys)
}

// addRetrySize changes the size of the retry queue. If it has become smaller, an overdue window
// may have room.
func (p *dedupProcessor) addRetrySize(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retrySize += bytes
	p.closeOverdue()
	p.updateRetainedMetric()
}

// schedule plans the next attempt of r after err, or drops r if there is none.
func (p *dedupProcessor) schedule(r *retry, err error) bool {
	cfg := p.cfg.RetryOnFailure
	r.last, r.err = time.Now(), err
	switch r.wait = r.backoff.NextBackOff(); {
	case p.ctx.Err() != nil:
		p.drop(r.part, reasonShutdown, err)
		return false
	case !cfg.Enabled || r.wait == backoff.Stop || cfg.MaxElapsedTime > 0 && r.last.Sub(r.first) >= cfg.MaxElapsedTime:
		p.drop(r.part, reasonRetriesExhausted, err)
		return false
	}
	p.logger.Warn("Export failed; retrying", append(p.splitFields(r.part), zap.Error(err), zap.Duration("retry_after", r.wait))...)
	return true
}

// nextRetry returns the retry that is due first, if there is one, and the time until then.
func (p *dedupProcessor) nextRetry(draining bool) (next *retry, wait time.Duration) {
	var first time.Time
	for _, r := range p.retries {
		after := r.wait
		if draining {
			after = min(after, drainBackoff)
		}
		if due := r.last.Add(after); next == nil || due.Before(first) {
			next, first = r, due
		}
	}
	return next, time.Until(first)
}

// retry sends r again.
func (p *dedupProcessor) retry(r *retry) {
	p.telemetry.retried()
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(r.message)
	if err != nil {
		err = consumererror.NewPermanent(err)
	} else {
		err = p.sendInBackground(r.part, pd)
	}
	switch {
	case err == nil:
		p.complete(r.part, nil)
	case isPermanent(err):
		p.drop(r.part, dropReason(err), err)
	case p.schedule(r, err) && p.reduce(r, err):
		return
	}
	p.removeRetries(func(other *retry) bool { return other == r })
}

// reduce takes from r the Profiles that the next consumer accepted before it returned err.
func (p *dedupProcessor) reduce(r *retry, err error) bool {
	rest, partial := partialerror.Profiles(err)
	if !partial {
		return true
	}
	size := r.size()
	if err := r.setPayload(rest); err != nil {
		p.drop(r.part, reasonPermanent, err)
		return false
	}
	p.addRetrySize(r.size() - size)
	return true
}

// removeRetries removes completed retries.
func (p *dedupProcessor) removeRetries(completed func(*retry) bool) {
	size := 0
	p.retries = slices.DeleteFunc(p.retries, func(r *retry) bool {
		if !completed(r) {
			return false
		}
		size += r.size()
		return true
	})
	if size > 0 {
		p.addRetrySize(-size)
	}
}

// dropRetries drops payloads that will not be sent again: everything if the time for shutdown has ended
// and, with on_flush, retries that no caller waits for. Those callers have retried or will. It does
// not drop the rest of a payload: a retry would send the accepted part again.
func (p *dedupProcessor) dropRetries() {
	if p.ctx.Err() == nil && p.cfg.Acknowledge != acknowledgeOnFlush {
		return
	}
	p.removeRetries(func(r *retry) bool {
		if p.ctx.Err() != nil {
			p.drop(r.part, reasonShutdown, r.err)
			return true
		}
		p.mu.Lock()
		abandoned := r.part.waiters == 0 && !r.part.partial
		if abandoned { // in one step, so that no duplicate waits for it
			p.completeLocked(r.part, r.err)
		}
		p.mu.Unlock()
		if abandoned {
			p.reportDropped(r.part, reasonAbandoned, r.err)
		}
		return abandoned
	})
}
