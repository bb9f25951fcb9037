// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
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
	w.close()
	for _, part := range w.unsent {
		err := invalid
		if err == nil {
			err = p.send(ctx, part)
		}
		p.mu.Lock()
		p.resolve(part, err)
		p.mu.Unlock()
		if err == nil {
			p.telemetry.merged(part.counts)
		}
	}
	if invalid != nil {
		return p.reject(invalid)
	}

	profiles, samples, bytes := w.accepted(payload, unique.skip, bytes)
	err := await(ctx, waits)
	if len(waits) == 1 && len(w.unsent) == 1 { // it may say which part of the payload failed
		err = ingest.ForCaller(w.unsent[0].err)
	}
	if err == nil {
		p.telemetry.accepted(payload, profiles, samples, bytes)
	} else if profiles > 0 {
		p.telemetry.incoming(profiles, samples, bytes)
	}
	return err
}

// accepted counts what the next consumer has accepted of the only payload of a window, which has so many bytes: of a
// partition that was rejected in part, all but that part.
func (w *window) accepted(payload *merge.Payload, skip []bool, of int) (profiles, samples, bytes int) {
	bytes = of
	for i := range payload.Profiles {
		profile := &payload.Profiles[i]
		if skip[i] {
			continue
		}
		err := w.partitions[profile.Partition].err
		if _, partial := ingest.NotAccepted(err); err == nil || partial {
			profiles++
			samples += profile.Samples
		}
	}
	for _, part := range w.unsent {
		if rest, partial := ingest.NotAccepted(part.err); partial {
			profiles = max(0, profiles-rest.ProfileCount())
			samples = max(0, samples-rest.SampleCount())
			bytes = max(0, bytes-sizeOf(rest))
		}
	}
	return profiles, samples, bytes
}
