// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// errUnknown is the outcome for those who wait for what another caller was passing on
// when it panicked.
var errUnknown = errors.New("profiles_dedup: the next component ended without an answer")

// consumeSingle passes on a payload by itself and returns what the next component
// says. Profiles whose repeats are on their way wait for the outcome of those, and are
// passed on if that is a failure.
func (p *dedupProcessor) consumeSingle(ctx context.Context, in *incoming) error {
	for first := true; ; first = false {
		b := newBatch(p.settings)
		p.mu.Lock()
		if p.stopping {
			p.mu.Unlock()
			p.telemetry.refused(reasonShutdown)
			return errStopping
		}
		outcomes, marked := p.repeats.mark(in.profiles)
		p.note(b, in)
		p.measure()
		p.mu.Unlock()

		if marked < len(in.profiles) {
			err := p.passOnSingle(ctx, b, in)
			if errors.Is(err, errInvalid) {
				p.telemetry.refused(reasonInvalid)
				return consumererror.NewPermanent(err)
			}
			if err != nil {
				return err
			}
		}
		if first {
			p.telemetry.accepted(in)
		}
		failed := false
		for _, part := range outcomes.all {
			select {
			case <-part.done:
				failed = failed || part.err != nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !failed {
			return nil
		}
		for i := range in.profiles {
			in.profiles[i].done = in.profiles[i].done || !in.profiles[i].repeat
		}
	}
}

// passOnSingle merges what of in is no repeat into b and offers that once.
func (p *dedupProcessor) passOnSingle(ctx context.Context, b *batch, in *incoming) error {
	defer func() { // so that nobody waits for ever if the next component panics
		for _, part := range b.partitions {
			select {
			case <-part.done:
			default:
				p.settle(part, errUnknown)
			}
		}
	}()
	im := p.singles.Get().(*importer)
	touched, err := im.merge(b.window, in.pd, in.repeated())
	p.telemetry.superseded(b.counts.superseded)
	for _, key := range touched {
		b.partition(key)
	}
	im.release()
	p.singles.Put(im)
	if err != nil {
		for _, part := range b.ordered() {
			p.settle(part, err)
		}
		return err
	}
	e := newEmitter(b.window)
	out := 0
	for _, part := range b.ordered() {
		bytes, refusal := p.passOn(ctx, e, part)
		p.settle(part, refusal)
		out += bytes
		err = worse(err, refusal)
	}
	if err == nil {
		p.telemetry.ratio(in.sizes.Total().Bytes, out)
	}
	return err
}
