// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// errPanicked is the outcome for callers that wait for a payload of another caller, when the next
// consumer panicked with that.
var errPanicked = errors.New("profiles_dedup: next consumer panicked")

// consumeImmediately sends a payload in a window of its own and returns the answer of the next
// consumer. Profiles whose duplicates are pending wait for their outcome, and are sent if that
// is a failure.
func (p *dedupProcessor) consumeImmediately(ctx context.Context, payload *merge.Payload, bytes int) error {
	sent := make([]bool, len(payload.Profiles)) // and accepted
	succeeded := false
	defer func() { p.countImmediate(payload, bytes, sent, succeeded) }()
	for !succeeded {
		for i := range sent {
			payload.Profiles[i].Skip = sent[i]
		}
		var waits outcomes
		w := newWindow(p.options)
		p.mu.Lock()
		if p.stopping {
			p.mu.Unlock()
			return p.reject(errStopping)
		}
		others := p.duplicates.skip(payload, &waits)
		p.register(w, payload)
		p.measure()
		p.mu.Unlock()

		if others {
			if err := p.sendImmediately(ctx, w, payload, sent); err != nil {
				return err
			}
		}
		succeeded = true
		for part := range waits {
			select {
			case <-part.done:
				succeeded = succeeded && part.err == nil
			case <-ctx.Done():
				succeeded = false
				return ctx.Err()
			}
		}
	}
	return nil
}

// sendImmediately sends each partition of payload once, without the Profiles to skip. It sets
// sent for those that were accepted.
func (p *dedupProcessor) sendImmediately(ctx context.Context, w *window, payload *merge.Payload, sent []bool) (err error) {
	defer func() {
		for _, part := range w.partitions {
			select {
			case <-part.done:
			default: // the next consumer panicked
				p.complete(part, errPanicked)
			}
		}
		for i := range payload.Profiles {
			if profile := &payload.Profiles[i]; !profile.Skip {
				sent[i] = w.partitions[profile.Partition].err == nil
			}
		}
	}()
	err = w.merged.Add(payload)
	w.close()
	if err != nil {
		for _, part := range w.unsent {
			p.complete(part, err)
		}
		p.telemetry.rejected(reasonInvalid)
		return consumererror.NewPermanent(err)
	}
	for _, part := range w.unsent {
		failure := p.send(ctx, part, w.merged.Emit(part.key))
		if failure == nil {
			p.telemetry.superseded(part.counts.Superseded)
		}
		p.complete(part, failure)
		err = worse(err, failure)
	}
	return err
}

// countImmediate counts a payload after its outcome: all of it, with duplicates, after a
// success, and otherwise only the Profiles that were accepted.
func (p *dedupProcessor) countImmediate(payload *merge.Payload, bytes int, sent []bool, succeeded bool) {
	for i := range sent {
		payload.Profiles[i].Skip = !sent[i]
	}
	if succeeded {
		p.telemetry.accepted(payload, bytes)
	} else if profiles, samples := added(payload); profiles > 0 {
		p.telemetry.incoming(profiles, samples, bytes)
	}
}
