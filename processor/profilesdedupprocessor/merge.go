// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
)

// roomTimeout is how long a payload waits for room in the open window: a client that retries has to
// send everything again.
const roomTimeout = time.Second

// ConsumeProfiles merges pd, which it only reads. An error is permanent if pd itself is
// invalid. Without a window it returns the answer of the next consumer.
func (p *dedupProcessor) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	bytes := sizeOf(pd)
	if err := p.checkSize(bytes, maxRetained*bytes); err != nil { // before a part of it is copied
		return p.reject(err)
	}
	payload, err := p.check(pd)
	if err != nil {
		return p.reject(err)
	}
	if len(payload.Profiles) == 0 {
		return nil
	}
	if p.cfg.Window == 0 {
		return p.sendAtOnce(ctx, payload, bytes)
	}
	waits, err := p.add(ctx, payload, bytes)
	if err != nil {
		return p.reject(err)
	}
	budget.Merged(ctx) // the window has a copy, which counts in memory_limit
	return await(ctx, waits)
}

// checkSize rejects a payload that may need more bytes of a window than memory_limit.
func (p *dedupProcessor) checkSize(bytes, needed int) error {
	if limit := p.cfg.MemoryLimit; p.cfg.Window > 0 && needed > int(limit) {
		return fmt.Errorf("%w (%v): it has %d bytes of OTLP and may need %d bytes", errTooLarge, limit, bytes, needed)
	}
	return nil
}

func (p *dedupProcessor) check(pd pprofile.Profiles) (payload *merge.Payload, err error) {
	defer p.recoverTo(&err, errMergePanicked)
	return merge.Check(pd, p.options)
}

func (p *dedupProcessor) merge(w *openWindow, payload *merge.Payload, skip []bool) (err error) {
	defer p.recoverTo(&err, errMergePanicked)
	if err := w.merged.Add(payload.Without(skip)); err != nil {
		return fmt.Errorf("profiles_dedup: %w", err)
	}
	return nil
}

// add merges a payload into the open window, without its duplicates, and returns the outcomes that
// its caller waits for: those of pending duplicates and, with on_flush, its own.
func (p *dedupProcessor) add(ctx context.Context, payload *merge.Payload, bytes int) (outcomeSet, error) {
	needed := maxRetained*bytes + payload.Repeated
	if err := p.checkSize(bytes, needed); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unique, waits, err := p.makeRoom(ctx, payload, needed)
	if err != nil {
		return nil, err
	}
	if unique.profiles > 0 {
		w := p.open
		if w == nil {
			w = p.newWindow()
		}
		if err := p.merge(w, payload, unique.skip); err != nil {
			if errors.Is(err, errMergePanicked) && p.open != nil { // it may be half-changed
				p.open = nil
				p.admission.windowClosed(w.size)
				for _, part := range w.close() {
					p.complete(part, errWindowPanicked, reasonPanic)
				}
			}
			return nil, err
		}
		if p.open == nil {
			p.open = w
			w.timer = time.AfterFunc(time.Until(w.end), func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.closeIfDue()
			})
		}
		w.register(payload, unique.skip, p.seen, p.cfg.Acknowledge == acknowledgeOnFlush, waits)
		p.admission.open = w.size
		p.closeIfDue()
	}
	p.telemetry.accepted(payload, unique.profiles, unique.samples, bytes)
	return waits, nil
}

// makeRoom waits until a window has room for the Profiles of a payload that are not duplicates: the open one, or a new one if
// there is none. It returns these Profiles and the outcomes of pending duplicates. The caller holds mu.
func (p *dedupProcessor) makeRoom(ctx context.Context, payload *merge.Payload, needed int) (unique uniqueProfiles, waits outcomeSet, err error) {
	var timeout <-chan time.Time
	for {
		if p.stopping {
			return unique, nil, errStopping
		}
		p.closeIfDue()
		unique, waits = p.seen.unique(payload)
		w := p.open
		if unique.profiles == 0 || w == nil || w.size+needed+sampleSize*unique.samples <= p.admission.maxWindow() {
			return unique, waits, nil
		}
		if p.closeWindow(reasonMemory) {
			return unique, waits, nil
		}
		if timeout == nil {
			timeout = time.After(roomTimeout)
		}
		if err := p.awaitClose(ctx, w, timeout); err != nil {
			return unique, nil, err
		}
	}
}

// awaitClose waits until the open window w, which has no room for a payload, has been closed. It returns an error if
// timeout or ctx end before. The caller holds mu, except meanwhile.
func (p *dedupProcessor) awaitClose(ctx context.Context, w *openWindow, timeout <-chan time.Time) error {
	w.waiting++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		w.waiting--
	}()
	select {
	case <-w.closed:
		return nil
	case <-timeout:
		return errMemoryLimit
	case <-ctx.Done():
		return fmt.Errorf("%w; %w", errMemoryLimit, ctx.Err())
	}
}

// await returns the worst of several outcomes, or the error of ctx if that ends before. An error goes before
// a success, and a retryable error before a permanent one.
func await(ctx context.Context, waits outcomeSet) (err error) {
	for result := range waits {
		select {
		case <-result.done:
			err = preferRetryable(err, forCallers(result.err))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}
