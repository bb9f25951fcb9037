// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
)

// sendAtOnce sends a payload in a window of its own and returns the answer of the next consumer. For
// duplicates of Profiles that another caller is sending, it is the answer that this caller gets.
func (p *dedupProcessor) sendAtOnce(ctx context.Context, payload *merge.Payload, bytes int) error {
	w := p.newWindow()
	p.mu.Lock()
	if p.stopping {
		p.mu.Unlock()
		return p.reject(errStopping)
	}
	unique, waits := p.seen.unique(payload)
	w.register(payload, unique.skip, p.seen, true, waits)
	p.mu.Unlock()

	var invalid error
	if unique.profiles > 0 {
		invalid = p.merge(w, payload, unique.skip)
	}
	p.telemetry.add(p.telemetry.ProcessorProfilesDedupSaturatedValues, w.merged.Counts().Saturated)
	parts := w.close()
	p.sendAll(ctx, parts, invalid)
	if invalid != nil {
		return p.reject(invalid)
	}

	profiles, samples, bytes := w.accepted(payload, unique.skip, bytes)
	err := await(ctx, waits)
	if len(waits) == 1 && len(parts) == 1 { // it may say which part of the payload failed
		err = ingest.ForCaller(parts[0].outcome.err)
	}
	if err == nil {
		p.telemetry.accepted(payload, profiles, samples, bytes)
	} else if profiles > 0 {
		p.telemetry.incoming(profiles, samples, bytes)
	}
	return err
}

// sendAll sends the partitions of a window side by side, once, unless their payload is invalid.
func (p *dedupProcessor) sendAll(ctx context.Context, parts []*partition, invalid error) {
	var sends errgroup.Group
	sends.SetLimit(p.cfg.NumConsumers)
	for _, part := range parts {
		sends.Go(func() error {
			err := invalid
			if err == nil {
				err = p.send(ctx, part, func(int) {})
			}
			p.mu.Lock()
			p.resolve(part.outcome, err)
			p.mu.Unlock()
			if err == nil {
				p.telemetry.merged(part.counts)
			}
			return nil
		})
	}
	_ = sends.Wait()
}

// accepted counts what the next consumer has accepted of the only payload of a window, which has so many bytes: of a
// partition that was rejected in part, all but that part.
func (w *openWindow) accepted(payload *merge.Payload, skip []bool, of int) (profiles, samples, bytes int) {
	bytes = of
	for i := range payload.Profiles {
		profile := &payload.Profiles[i]
		if skip[i] {
			continue
		}
		err := w.outcomes[profile.Partition].err
		if _, partial := ingest.NotAccepted(err); err == nil || partial {
			profiles++
			samples += profile.Samples
		}
	}
	for _, result := range w.outcomes {
		if rest, partial := ingest.NotAccepted(result.err); partial {
			profiles = max(0, profiles-rest.ProfileCount())
			samples = max(0, samples-rest.SampleCount())
			bytes = max(0, bytes-sizeOf(rest))
		}
	}
	return profiles, samples, bytes
}
