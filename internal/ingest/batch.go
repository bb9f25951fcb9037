// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/panics"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Batch translates the payloads of one request. An error of a payload is in its Result and does not concern the others.
type Batch struct {
	in      *Ingester
	held    *Reservation
	arrived time.Time
	seen    occurrences
}

// Result is a payload of a Batch and what became of it.
type Result struct {
	Profiles pprofile.Profiles
	Bytes    int   // about the memory of Profiles
	Empty    int   // Profiles without samples, which are left out
	Err      error // that ended the way of the payload

	payload Payload
	format  format
	memory  int64  // bytes for the work on it
	size    int    // of the payload in bytes, decompressed
	service string // its service.name
	unnamed bool   // the sender has not stated that
	start   pcommon.Timestamp
	report  pproftranslator.Report
	outside int // timestamps outside the Profile
}

// fields say in the log which payload it is.
func (r *Result) fields() []zap.Field {
	return []zap.Field{zap.String("service", r.service), zap.String("profile", r.payload.ProfileType)}
}

// NewBatch returns a Batch that uses a reservation.
func (in *Ingester) NewBatch(held *Reservation) *Batch {
	return &Batch{in: in, held: held, arrived: time.Now(), seen: occurrences{}}
}

// TranslateOne translates a payload. After an error the reservation may hold its work until it is released.
func (b *Batch) TranslateOne(ctx context.Context, p Payload) (*Result, error) {
	results, err := b.Translate(ctx, b.in.limit(), []Payload{p})
	if err != nil {
		return nil, err
	}
	return results[0], results[0].Err
}

// Translate decompresses payloads to at most limit bytes in total, and translates them. The reservation keeps the results,
// which are in the order of the payloads. The error is one of memory or of ctx, and concerns all of them.
func (b *Batch) Translate(ctx context.Context, limit int, payloads []Payload) ([]*Result, error) {
	results := make([]*Result, len(payloads))
	for i, p := range payloads {
		if p.Arrived.IsZero() {
			p.Arrived = b.arrived
		}
		results[i] = &Result{payload: p, service: dictionary.TextOf(p.Resource, AttributeServiceName)}
		payloads[i].Data = nil // its Result has it
	}
	return results, b.translateAll(ctx, results, limit)
}

func (b *Batch) translateAll(ctx context.Context, results []*Result, limit int) error {
	if err := b.decompress(ctx, results, limit); err != nil {
		return err
	}
	before := b.held.held[Work]
	total := before
	for _, r := range results {
		if r.Err == nil {
			r.format = b.in.formatOf(&r.payload)
			r.memory = b.in.memory(r, b.held.limit.MaxWork()-total)
			if r.Err = b.held.limit.most[Work].check(total + r.memory); r.Err == nil {
				total += r.memory
			}
		}
	}
	if err := b.held.Take(ctx, Work, total-before); err != nil {
		return err
	}
	keep := before
	for _, r := range results {
		if r.Err == nil {
			start := time.Now()
			b.in.guard(r, func() error { return b.in.translate(r, b.seen, b.held) })
			b.in.measure(ctx, r, time.Since(start))
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(r.Err, ErrInFlightLimit):
			return r.Err
		case errors.Is(r.Err, io.EOF): // the recording has no more chunks
		case r.Err != nil:
			_, end := b.in.observe(ctx)
			end(0, r.Err)
		default:
			keep += int64(r.Bytes)
		}
	}
	b.held.Shrink(Work, keep)
	return nil
}

// decompress decompresses payloads to at most limit bytes in total, and the labels of each recording to so many. It takes the
// sizes that they state at once, so that a request does not wait for more while it holds some.
func (b *Batch) decompress(ctx context.Context, results []*Result, limit int) error {
	sizes, total := make([]int64, len(results)), int64(0)
	for i, r := range results {
		size, err := expansion(r.payload.Data, limit)
		if err == nil && b.held.limit.most[Decompressed].check(b.held.held[Decompressed]+total+size) == nil {
			sizes[i] = size
			total += size
		}
	}
	if err := b.held.Take(ctx, Decompressed, total); err != nil {
		return err
	}
	left, wasted := limit, 0 // by payloads that are rejected
	for i, r := range results {
		ofAll := &pproftranslator.LimitError{What: DecompressedSize + " of all profiles of the request", Limit: int64(limit)}
		if wasted > limit {
			r.Err = ofAll
			continue
		}
		b.in.guard(r, func() (err error) {
			p := &r.payload
			if p.Data, err = b.held.decompressWithin(ctx, p.Data, left, sizes[i]); err == nil {
				p.Recording.Labels, err = b.held.decompressWithin(ctx, p.Recording.Labels, limit, 0)
			}
			exceeded, tooLarge := err.(*pproftranslator.LimitError) //nolint:errorlint // those of max_in_flight are wrapped
			if tooLarge && left < limit && exceeded.Limit == int64(left) {
				return ofAll
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(r.Err, ErrInFlightLimit):
			return r.Err
		case r.Err == nil:
			left -= len(r.payload.Data)
			continue
		}
		wasted += len(r.payload.Data)
		r.payload.Data = nil // which the reservation does not hold
	}
	return nil
}

// PassAll calls Pass for all results, concurrently: so a client waits only once for a next consumer that collects payloads
// for a while before it answers. The errors are in the order of the results.
func (in *Ingester) PassAll(ctx context.Context, results []*Result) []error {
	errs := make([]error, len(results))
	var running sync.WaitGroup
	for i, r := range results {
		if errs[i] = r.Err; r.Err == nil {
			running.Go(func() { errs[i] = in.Pass(ctx, r) })
		}
	}
	running.Wait()
	return errs
}

// guard sets the error of a stage of a payload, also if it panics.
func (in *Ingester) guard(r *Result, stage func() error) {
	defer Recover(in.settings.Logger, &r.Err, r.fields()...)
	r.Err = stage()
}

// PanicError means that a component panicked while it processed a payload.
type PanicError = panics.Error

// Recover turns a panic into a *PanicError and logs its stack. The fields say what was
// processed. A function must defer the call itself.
func Recover(logger *zap.Logger, err *error, fields ...zap.Field) {
	if value := recover(); value != nil {
		stack := debug.Stack()
		*err = &PanicError{Value: value, Stack: stack}
		logger.Error("Panic while processing a profile", append(fields, zap.Any("panic", value), zap.ByteString("stack", stack))...)
	}
}
