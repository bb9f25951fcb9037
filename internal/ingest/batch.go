// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Batch takes the payloads of one request through their stages: Translate decompresses and translates those that were
// added, Pass passes them on. An error of a payload ends its way and does not concern the others; Pass returns it.
type Batch struct {
	in       *Ingester
	held     *Reservation
	arrived  time.Time
	seen     occurrences
	payloads []*Translated
}

// NewBatch returns a Batch without payloads, which uses a reservation.
func (in *Ingester) NewBatch(held *Reservation) *Batch {
	return &Batch{in: in, held: held, arrived: time.Now(), seen: occurrences{}}
}

// Next returns a batch without payloads for the rest of the request.
func (b *Batch) Next() *Batch {
	return &Batch{in: b.in, held: b.held, arrived: b.arrived, seen: b.seen}
}

// Add adds a payload.
func (b *Batch) Add(p Payload) {
	if p.Arrived.IsZero() {
		p.Arrived = b.arrived
	}
	t := &Translated{payload: p, profileType: p.ProfileType}
	if name, ok := p.Resource.Get(AttributeServiceName); ok {
		t.service = name.AsString()
	}
	b.payloads = append(b.payloads, t)
}

// AddTranslated adds a payload and translates it, beside those that have been. After an error the batch is as before.
func (b *Batch) AddTranslated(ctx context.Context, p Payload, limit int) error {
	before := b.payloads
	b.Add(p)
	t := b.payloads[len(before)]
	err := b.translate(ctx, b.payloads[len(before):], limit)
	if err == nil {
		err = t.err
	}
	if err != nil {
		b.payloads = before
	}
	return err
}

// Translate decompresses all payloads to at most limit bytes in total, and translates them. The reservation keeps the
// results. The error is one of memory or of ctx, and concerns all.
func (b *Batch) Translate(ctx context.Context, limit int) error {
	return b.translate(ctx, b.payloads, limit)
}

func (b *Batch) translate(ctx context.Context, payloads []*Translated, limit int) error {
	if err := b.decompress(ctx, payloads, limit); err != nil {
		return err
	}
	results := b.held.held[work]
	total := results
	for _, t := range payloads {
		if t.err == nil {
			t.memory = b.in.memory(&t.payload, b.held.limit.MaxWork()-total)
			if t.err = b.held.limit.most[work].check(total + t.memory); t.err == nil {
				total += t.memory
			}
		}
	}
	if err := b.held.take(ctx, work, total-results); err != nil {
		return err
	}
	for _, t := range payloads {
		if t.err == nil {
			start := time.Now()
			b.in.guard(t, func() error { return b.in.translate(t, b.seen, b.held) })
			t.duration = time.Since(start)
			b.in.measure(ctx, t)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(t.err, ErrInFlightLimit):
			return t.err
		case t.err != nil:
			_, end := b.in.observe(ctx)
			end(0, t.err)
		default:
			results += int64(t.Bytes)
		}
	}
	b.held.shrink(work, results)
	return nil
}

// decompress decompresses payloads to at most limit bytes in total. It takes the sizes that they state at once, so that
// a request does not wait for more while it holds some.
func (b *Batch) decompress(ctx context.Context, payloads []*Translated, limit int) error {
	sizes, total := make([]int64, len(payloads)), int64(0)
	for i, t := range payloads {
		if size, err := expansion(t.payload.Data, limit); err == nil && b.held.limit.most[decompressed].check(b.held.held[decompressed]+total+size) == nil {
			sizes[i] = size
			total += size
		}
	}
	if err := b.held.take(ctx, decompressed, total); err != nil {
		return err
	}
	left, wasted := limit, 0 // by payloads that are rejected
	for i, t := range payloads {
		ofAll := &pproftranslator.LimitError{What: DecompressedSize + " of all profiles of the request", Limit: int64(limit)}
		if wasted > limit {
			t.err = ofAll
			continue
		}
		b.in.guard(t, func() (err error) {
			p := &t.payload
			if p.Data, err = b.held.decompressWithin(ctx, p.Data, left, sizes[i]); err == nil {
				p.Recording.Labels, err = b.held.decompressWithin(ctx, p.Recording.Labels, limit, 0)
			}
			return err
		})
		_, tooLarge := t.err.(*pproftranslator.LimitError) //nolint:errorlint // those of max_in_flight are wrapped
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(t.err, ErrInFlightLimit):
			return t.err
		case t.err == nil:
			left -= len(t.payload.Data)
		case tooLarge && left < limit:
			t.err = ofAll
			fallthrough
		default:
			wasted += len(t.payload.Data)
		}
		if t.err != nil {
			t.payload.Data = nil // which the reservation does not hold
		}
	}
	return nil
}

// Payloads returns the payloads in the order in which they were added.
func (b *Batch) Payloads() []*Translated { return b.payloads }

// Pass passes all payloads to the next consumer. It does so concurrently, so that a client
// waits only once for a next consumer that collects payloads for a while before it
// answers. A panic concerns its payload only, whose error is then a *PanicError. The
// errors are in the order of the payloads.
func (b *Batch) Pass(ctx context.Context) []error {
	errs := make([]error, len(b.payloads))
	pass := func(i int) {
		if t := b.payloads[i]; t.err == nil {
			b.in.guard(t, func() error { return b.in.Pass(ctx, t) })
		}
		errs[i] = b.payloads[i].err
	}
	if len(errs) == 1 { // as most requests have
		pass(0)
		return errs
	}
	var running sync.WaitGroup
	for i := range b.payloads {
		running.Go(func() { pass(i) })
	}
	running.Wait()
	return errs
}

// guard sets the error of a stage of a payload, also if it panics.
func (in *Ingester) guard(t *Translated, stage func() error) {
	defer Recover(in.settings.Logger, &t.err, zap.String("service", t.service), zap.String("profile", t.profileType))
	t.err = stage()
}

// PanicError means that a component panicked while it processed a payload.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Recover turns a panic into a *PanicError and logs its stack. The fields say what was
// processed. A function must defer the call itself.
func Recover(logger *zap.Logger, err *error, fields ...zap.Field) {
	if value := recover(); value != nil {
		*err = &PanicError{value}
		logger.Error("Panic while processing a profile", append(fields, zap.Any("panic", value), zap.Stack("stack"))...)
	}
}
