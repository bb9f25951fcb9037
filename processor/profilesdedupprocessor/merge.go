// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

// roomTimeout is how long a payload waits for room in the open window.
const roomTimeout = time.Second

// checkSize rejects a payload that may need more bytes than memory_limit.
func (p *dedupProcessor) checkSize(bytes, needed int) error {
	if limit := p.cfg.MemoryLimit; needed > int(limit) {
		return fmt.Errorf("%w (%v): it has %d bytes of OTLP and may need %d bytes", errTooLarge, limit, bytes, needed)
	}
	return nil
}

func (p *dedupProcessor) prepare(pd pprofile.Profiles) (payload *merge.Payload, err error) {
	defer p.recoverTo(&err, errMergePanicked)
	return merge.Prepare(pd, p.options, p.openWindow())
}

// openWindow returns the merged part of the open window, which may be closed at any time, or nil.
func (p *dedupProcessor) openWindow() *merge.Window {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		return nil
	}
	return p.open.merged
}

// addWhenRoom is add. If the open window has no room, it waits for at most roomTimeout until the
// window before it is exported: a client that retries has to send everything again.
func (p *dedupProcessor) addWhenRoom(ctx context.Context, payload *merge.Payload, bytes int) (partitionSet, error) {
	var timeout <-chan time.Time
	for {
		waits, room, err := p.add(payload, bytes)
		if room == nil {
			return waits, err
		}
		if timeout == nil {
			timer := time.NewTimer(roomTimeout)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-room:
		case <-timeout:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
		for i := range payload.Profiles {
			payload.Profiles[i].Skip = false // a pending duplicate may have failed
		}
	}
}

// add merges a payload into the open window, without its duplicates, and returns the
// partitions that its caller waits for. If there is no room, it returns errMemoryLimit and a
// channel that is closed when there may be.
func (p *dedupProcessor) add(payload *merge.Payload, bytes int) (waits partitionSet, room <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.updateRetainedMetric() // runs after closeOverdue, whose result it measures
	defer p.closeOverdue()         // evicted IDs may have made room
	if p.stopping {
		return nil, nil, errStopping
	}
	needed := maxRetained*bytes + payload.Repeated
	if err := p.checkSize(bytes, needed); err != nil {
		return nil, nil, err
	}
	profiles, samples := p.seen.skip(payload, &waits)
	if profiles > 0 {
		err := p.merge(payload, needed)
		if errors.Is(err, errMemoryLimit) {
			if p.room == nil {
				p.room = make(chan struct{})
			}
			return nil, p.room, err
		}
		if err != nil {
			return nil, nil, err
		}
		touched := p.register(p.open, payload)
		if p.cfg.Acknowledge == acknowledgeOnFlush {
			for part := range touched {
				waits.add(part)
			}
		}
		p.open.measure()
		switch {
		case p.open.size >= p.maxWindow():
			p.closeIfRoom(reasonMemory)
		case p.open.merged.Slots() >= maxSlots && p.open.overdue == "":
			p.open.overdue = reasonSlots // closeOverdue follows
		}
	}
	p.telemetry.accepted(payload, profiles, samples, bytes)
	for part := range waits {
		part.waiters++
	}
	return waits, nil, nil
}

// merge adds payload to the open window. It first closes a window that may become too large with
// needed more bytes, or whose sums would overflow.
func (p *dedupProcessor) merge(payload *merge.Payload, needed int) error {
	if p.open != nil && p.open.size+needed > p.maxWindow() && !p.closeIfRoom(reasonMemory) {
		return errMemoryLimit
	}
	err := p.mergeIntoOpen(payload)
	if _, overflow := errors.AsType[*dictionary.OverflowError](err); overflow && p.open != nil {
		if !p.closeIfRoom(reasonOverflow) {
			return errMemoryLimit
		}
		err = p.mergeIntoOpen(payload)
	}
	return err
}

// mergeIntoOpen adds payload to the open window or, if there is none, opens one with it.
func (p *dedupProcessor) mergeIntoOpen(payload *merge.Payload) error {
	w := p.open
	if w == nil {
		w = newWindow(p.options)
	}
	superseded := w.merged.Counts().Superseded
	if err := p.addTo(w, payload); err != nil {
		if errors.Is(err, errMergePanicked) && p.open != nil {
			p.dropOpen()
		}
		return err
	}
	p.telemetry.superseded(w.merged.Counts().Superseded - superseded)
	if p.open == nil {
		p.open = w
		w.timer = time.AfterFunc(p.cfg.Window, func() { p.expire(w) })
	}
	return nil
}

func (p *dedupProcessor) addTo(w *window, payload *merge.Payload) (err error) {
	defer p.recoverTo(&err, errMergePanicked)
	return w.merged.Add(payload)
}

// register records in w and in p.seen the Profiles of payload that are not skipped: as
// acknowledged, or as pending until the outcome of their partition. It returns the partitions
// that payload goes into. The caller holds mu.
func (p *dedupProcessor) register(w *window, payload *merge.Payload) (touched partitionSet) {
	for i := range payload.Profiles {
		profile := &payload.Profiles[i]
		if profile.Skip {
			continue
		}
		part := w.partition(profile.Partition)
		touched.add(part)
		switch {
		case profile.Key == merge.Key{}:
			continue
		case p.acknowledgesLater():
			p.seen.pending[profile.Key] = part
			w.addKey(part, profile.Key)
		default:
			w.addKey(part, profile.Key)
			part.acknowledgedAt = p.seen.acknowledge(part.keys[len(part.keys)-1:])
		}
	}
	return touched
}

// acknowledgesLater reports whether callers get the outcome of the next consumer.
func (p *dedupProcessor) acknowledgesLater() bool {
	return p.cfg.Window == 0 || p.cfg.Acknowledge == acknowledgeOnFlush
}

// await returns the outcome of all partitions, or the error of ctx. The caller is among their
// waiters.
func (p *dedupProcessor) await(ctx context.Context, waits partitionSet) (err error) {
	if len(waits) == 0 {
		return nil
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for part := range waits {
			part.waiters--
		}
		p.exporter.wakeUp() // it drops retries without waiters
	}()
	for part := range waits {
		select {
		case <-part.done:
			err = preferRetryable(err, part.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return withoutPart(partialerror.ForCaller(err))
}
