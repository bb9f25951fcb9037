// Copyright The otelcol-profiles Authors
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
	answered := false
	defer func() { p.countSingle(in, answered) }()
	for {
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
			answered = true
			return nil
		}
	}
}

// countSingle counts in once its outcome is known: all of it if that is good, else what
// of it was passed on all the same.
func (p *dedupProcessor) countSingle(in *incoming, good bool) {
	profiles, samples := 0, 0
	for i := range in.profiles {
		profile := &in.profiles[i]
		if profile.repeat = !profile.done; profile.done {
			profiles++
			samples += profile.samples
		}
	}
	if good {
		p.telemetry.accepted(in)
	} else if profiles > 0 {
		p.telemetry.incoming(profiles, samples, in.sizes)
	}
}

// passOnSingle merges what of in is no repeat into b and offers that once. What is
// accepted is done.
func (p *dedupProcessor) passOnSingle(ctx context.Context, b *batch, in *incoming) error {
	defer func() {
		for _, part := range b.partitions { // so that nobody waits for ever if the next component panics
			select {
			case <-part.done:
			default:
				p.settle(part, errUnknown)
			}
		}
		for i := range in.profiles {
			profile := &in.profiles[i]
			if part := b.partitions[profile.partition]; part != nil && part.err == nil && !profile.repeat {
				profile.done = true
			}
		}
	}()
	im := p.singles.Get().(*importer)
	touched, err := im.merge(b.window, in.pd, in.repeated())
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
		passed, refusal := p.passOn(ctx, e, part)
		p.settle(part, refusal)
		if refusal == nil {
			p.telemetry.passedOn(passed)
			out += passed.sizes.Total().Bytes
			p.telemetry.superseded(b.window.partitions[part.key].superseded)
		}
		err = worse(err, refusal)
	}
	if err == nil {
		p.telemetry.ratio(in.sizes.Total().Bytes, out)
	}
	return err
}
