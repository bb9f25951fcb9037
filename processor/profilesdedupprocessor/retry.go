// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v7"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// backOff is the state of a partition that was sent in vain.
type backOff struct {
	backoff.ExponentialBackOff
	since time.Time // of the first error
	last  error
}

const (
	// drainWait bounds each wait during shutdown.
	drainWait = 200 * time.Millisecond
	// drainThrottle bounds the delays that the next consumer asks for during shutdown.
	drainThrottle = time.Second
	// briefDelay is the longest of these delays in which a partition that was not sent yet keeps its window.
	briefDelay = time.Second
	// maxThrottle bounds these delays if max_elapsed_time does not.
	maxThrottle = time.Hour
)

// dropReason is the reason why a partition is not sent again after err, or empty.
func (p *dedupProcessor) dropReason(part *partition, err error) reason {
	retry := p.cfg.RetryOnFailure
	switch {
	case err == nil:
	case errors.Is(err, errExportPanicked):
		return reasonPanic
	case ingest.IsPermanent(err):
		return reasonPermanent
	case p.ctx.Err() != nil:
		return reasonShutdown
	case !retry.Enabled,
		retry.MaxElapsedTime > 0 && part.retry != nil && time.Since(part.retry.since) >= retry.MaxElapsedTime:
		return reasonRetriesExhausted
	}
	return ""
}

// pause waits before the next attempt of a partition, after err. It holds no place.
func (p *dedupProcessor) pause(part *partition, err error) {
	if part.retry == nil {
		cfg := p.cfg.RetryOnFailure
		part.retry = &backOff{since: time.Now(), ExponentialBackOff: backoff.ExponentialBackOff{
			InitialInterval: cfg.InitialInterval, MaxInterval: cfg.MaxInterval,
			Multiplier: cfg.Multiplier, RandomizationFactor: cfg.RandomizationFactor,
		}}
	}
	part.retry.last = err
	p.mu.Lock()
	p.throttle(part, delayOf(err))
	p.reportFailure(part, err)
	p.mu.Unlock()
	p.wait(part.retry.NextBackOff())
}

// wait waits for d, or until shutdown begins. During shutdown it waits for drainWait at most.
func (p *dedupProcessor) wait(d time.Duration) {
	draining := p.draining
	select {
	case <-draining:
		d, draining = min(d, drainWait), nil
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-draining:
	case <-p.ctx.Done():
	}
}

// throttle keeps the partitions with the key of part from being sent before the delay that the next consumer has asked
// for. max_elapsed_time bounds the delay. The caller holds mu.
func (p *dedupProcessor) throttle(part *partition, delay time.Duration) {
	if delay <= 0 {
		return
	}
	now, longest := time.Now(), maxThrottle
	if limit := p.cfg.RetryOnFailure.MaxElapsedTime; limit > 0 {
		longest = limit - now.Sub(part.retry.since)
	}
	if p.stopping {
		longest = drainThrottle
	}
	maps.DeleteFunc(p.throttled, func(_ string, until time.Time) bool { return !until.After(now) })
	if until := now.Add(min(delay, longest)); until.After(p.throttled[part.key]) {
		p.throttled[part.key] = until
	}
}

// throttledFor is how long no partition with a key is sent, as the next consumer has asked for.
func (p *dedupProcessor) throttledFor(key string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until, ok := p.throttled[key]; ok {
		return time.Until(until)
	}
	return 0
}

// awaitPermit waits until a partition may be sent. It returns an error if its payload cannot be made, or when the time for
// shutdown has ended.
func (p *dedupProcessor) awaitPermit(part *partition) (*permit, error) {
	for p.ctx.Err() == nil {
		_, inWindow := part.source.(*windowPart)
		if delay := p.throttledFor(part.key); delay > 0 && (!inWindow || delay <= briefDelay) {
			p.wait(delay)
			continue
		}
		allowed := p.requestPermit(part)
		select {
		case <-allowed.granted:
		case <-p.ctx.Done():
			p.endPermit(allowed)
			continue
		}
		delay := p.throttledFor(part.key)
		if delay <= 0 {
			return allowed, nil
		}
		if !inWindow || delay <= briefDelay {
			p.endPermit(allowed)
			continue
		}
		if err := p.keepUnsent(part, allowed); err != nil {
			return nil, err
		}
	}
	if part.retry != nil {
		return nil, fmt.Errorf("%w; last error: %w", p.ctx.Err(), part.retry.last)
	}
	return nil, p.ctx.Err()
}

// keepUnsent keeps the payload of a partition that is delayed, so that its window, which takes more memory, also of other
// partitions, does not wait for it.
func (p *dedupProcessor) keepUnsent(part *partition, allowed *permit) error {
	defer p.endPermit(allowed)
	return p.keepAll(part, func(size int) { p.measure(part, allowed, size) })
}

func (p *dedupProcessor) requestPermit(part *partition) *permit {
	p.mu.Lock()
	defer p.mu.Unlock()
	if from, first := part.source.(*windowPart); first {
		return p.admission.request(func() int { return from.window.estimate(part.counts.Samples) }, false)
	}
	return p.admission.request(func() int { return part.size }, true)
}

// delayOf is the longest delay that err asks for: that of exporterhelper.NewThrottleRetry, which has no accessor, or of
// gRPC's RetryInfo. It is 0 if there is none. A server cannot write the first: the text of an error that wraps no other one
// does not count.
func delayOf(err error) (delay time.Duration) {
	if err == nil {
		return 0
	}
	if of, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		for _, detail := range of.GRPCStatus().Details() {
			if info, ok := detail.(*errdetails.RetryInfo); ok {
				delay = max(delay, info.GetRetryDelay().AsDuration())
			}
		}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			delay = max(delay, delayOf(e))
		}
	}
	if wrapped := errors.Unwrap(err); wrapped != nil {
		text, found := strings.CutSuffix(err.Error(), "), error: "+wrapped.Error())
		text, prefixed := strings.CutPrefix(text, "Throttle (")
		if d, failed := time.ParseDuration(text); found && prefixed && failed == nil {
			delay = max(delay, d)
		}
		delay = max(delay, delayOf(wrapped))
	}
	return delay
}

// exportFailed names the trouble of payloads that wait to be sent again: one warning a minute, and the status of the
// component.
const exportFailed = "Export failed; retrying"

// reportFailure reports a failed attempt, and what waits. The caller holds mu.
func (p *dedupProcessor) reportFailure(part *partition, err error) {
	p.trouble.Failed(exportFailed, err, append(p.splitFields(part),
		zap.Int("waiting_payloads", p.admission.waiting), zap.Int("waiting_bytes", p.admission.messages))...)
}

// reportSuccess reports that the trouble is over if a payload was accepted and none waits. At shutdown, the status is not
// the component's any more. The caller holds mu.
func (p *dedupProcessor) reportSuccess() {
	if p.admission.waiting == 0 && !p.stopping {
		p.trouble.Over(exportFailed, "Exported all payloads that waited for a retry")
	}
}
