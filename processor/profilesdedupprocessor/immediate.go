// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

// consumeImmediately sends a payload in a window of its own and returns the answer of the next
// consumer. Duplicates of Profiles that another caller is sending wait for the outcome, and are
// sent if that is a failure.
func (p *dedupProcessor) consumeImmediately(ctx context.Context, payload *merge.Payload, bytes int) error {
	accepted := make([]bool, len(payload.Profiles)) // by the next consumer
	succeeded := false
	defer func() { p.countImmediate(payload, bytes, accepted, succeeded) }()
	for !succeeded {
		for i := range accepted {
			payload.Profiles[i].Skip = accepted[i]
		}
		var waits partitionSet
		w := newWindow(p.options)
		p.mu.Lock()
		if p.stopping {
			p.mu.Unlock()
			return p.reject(errStopping)
		}
		others, _ := p.seen.skip(payload, &waits)
		p.register(w, payload)
		p.updateRetainedMetric()
		p.mu.Unlock()

		if others > 0 {
			if err := p.sendImmediately(ctx, w, payload, accepted); err != nil {
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
// accepted for each Profile that the next consumer accepted.
func (p *dedupProcessor) sendImmediately(ctx context.Context, w *window, payload *merge.Payload, accepted []bool) (err error) {
	defer func() {
		for _, part := range w.partitions {
			select {
			case <-part.done:
			default: // the next consumer panicked
				p.complete(part, errNextPanicked)
			}
		}
		for i := range payload.Profiles {
			if profile := &payload.Profiles[i]; !profile.Skip {
				accepted[i] = w.partitions[profile.Partition].err == nil
			}
		}
	}()
	err = p.addTo(w, payload)
	w.close()
	if err != nil {
		for _, part := range w.unsent {
			p.complete(part, err)
		}
		return p.reject(err)
	}
	for _, part := range w.unsent {
		pd, failure := p.emit(part)
		if failure == nil {
			failure = p.send(ctx, part, pd)
		}
		if failure == nil {
			p.telemetry.superseded(part.counts.Superseded)
			p.telemetry.empty(w.merged.PartitionCounts(part.key).Empty)
		}
		p.complete(part, failure)
		err = preferRetryable(err, failure)
	}
	err = partialerror.ForCaller(err)
	if len(w.unsent) > 1 {
		err = withoutPart(err)
	}
	return err
}

// countImmediate counts a payload after its outcome: after a success all Profiles, as
// duplicates those that were not sent, and after a failure only the accepted ones.
func (p *dedupProcessor) countImmediate(payload *merge.Payload, bytes int, accepted []bool, succeeded bool) {
	profiles, samples := 0, 0
	for i, ok := range accepted {
		if ok {
			profiles++
			samples += payload.Profiles[i].Samples
		}
	}
	if succeeded {
		p.telemetry.accepted(payload, profiles, samples, bytes)
	} else if profiles > 0 {
		p.telemetry.incoming(profiles, samples, bytes)
	}
}
