// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Batch translates the payloads of one request. An error of a payload is in its Result and does not concern the others. After an
// error of the Batch, which may wrap budget.ErrFull, the same payloads can be translated again.
type Batch struct {
	in      *Ingester
	lease   *budget.Lease
	arrived time.Time
	seen    occurrences
}

// Result is a payload of a Batch and what became of it.
type Result struct {
	Profiles pprofile.Profiles
	Bytes    int   // about the memory of Profiles
	Err      error // that ended the way of the payload

	lease        *budget.Lease // that holds Bytes, and while it is translated work and result
	payload      Payload
	format       format
	work, result int64 // bytes of the translation, and of what it may make
	took         time.Duration

	size    int    // of the payload in bytes, decompressed
	service string // its service.name
	unnamed bool   // the sender has not stated that
	start   pcommon.Timestamp
	report  pproftranslator.Report
	outside int // timestamps outside the Profile

	damage       error // of the rest of an execution trace
	droppedNames int   // tasks and regions of an execution trace
	otherLines   int   // of the output of perf script
	unpaired     int   // switches of threads there
}

// fields say in the log which payload it is.
func (r *Result) fields() []zap.Field {
	return []zap.Field{zap.String("service", r.service), zap.String("profile", r.payload.ProfileType)}
}

// NewBatch returns a Batch that uses a lease.
func (in *Ingester) NewBatch(lease *budget.Lease) *Batch {
	return &Batch{in: in, lease: lease, arrived: time.Now(), seen: occurrences{}}
}

// TranslateOne translates a payload. After an error the lease may hold its work until it is released.
func (b *Batch) TranslateOne(ctx context.Context, p Payload) (*Result, error) {
	results, err := b.Translate(ctx, b.in.limit(), []Payload{p})
	if err != nil {
		return nil, err
	}
	return results[0], results[0].Err
}

// TranslateWithin translates a payload as soon as the lease, which holds no work yet, gets all that it needs.
func (in *Ingester) TranslateWithin(ctx context.Context, lease *budget.Lease, p Payload) (r *Result, err error) {
	err = lease.Within(ctx, func() error {
		r, err = in.NewBatch(lease).TranslateOne(ctx, p)
		return err
	})
	return r, err
}

// Translate decompresses payloads to at most limit bytes in total, and translates them. The lease keeps the Bytes of the results,
// which are in the order of the payloads. The error is one of memory or of ctx, and concerns all of them.
func (b *Batch) Translate(ctx context.Context, limit int, payloads []Payload) ([]*Result, error) {
	results := make([]*Result, len(payloads))
	for i, p := range payloads {
		if p.Arrived.IsZero() {
			p.Arrived = b.arrived
		}
		results[i] = &Result{lease: b.lease, payload: p, service: dictionary.TextOf(p.Resource, AttributeServiceName)}
	}
	before, seen := b.lease.Used(), maps.Clone(b.seen)
	if err := b.decompress(ctx, results, limit); err != nil {
		return nil, err
	}
	if err := b.takeWork(results); err != nil {
		return nil, err
	}
	kept := int64(0)
	for _, r := range results {
		if r.Err == nil {
			start := time.Now()
			b.in.guard(r, func() error { return b.in.translate(r, seen) })
			r.took = time.Since(start)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(r.Err, budget.ErrFull):
			return nil, r.Err
		case r.Err == nil:
			kept += int64(r.Bytes)
		}
	}
	b.lease.Free(b.lease.Used() - before - kept)
	b.seen = seen
	clear(payloads) // nobody needs them now
	for _, r := range results {
		r.payload = r.payload.described()
		b.in.measure(ctx, r)
	}
	return results, nil
}

// takeWork takes the bytes of the translations at once: one that needs more than there is does not concern the others.
func (b *Batch) takeWork(results []*Result) error {
	total, left := int64(0), b.lease.MaxWork()-b.lease.Used()
	for _, r := range results {
		if r.Err != nil {
			continue
		}
		r.format = b.in.formatOf(&r.payload)
		b.in.estimate(r, left-total)
		needed := r.work + r.result
		if needed > left-total {
			if r.Err = b.lease.Reserve(total + needed); isTooLarge(r.Err) {
				continue
			}
			r.Err = nil
		}
		total += needed
	}
	return b.lease.Take(total)
}

// decompress decompresses payloads to at most limit bytes in total, and the labels of each recording to so many. It reserves the
// sizes that they state at once.
func (b *Batch) decompress(ctx context.Context, results []*Result, limit int) error {
	total := int64(0)
	for _, r := range results {
		if size, err := expansion(r.payload.Data, limit); err == nil {
			total += size.total()
		}
	}
	if err := b.lease.Reserve(total); err != nil && !isTooLarge(err) {
		return err
	}
	left, wasted := limit, 0 // by payloads that are rejected
	for _, r := range results {
		ofAll := &pproftranslator.LimitError{What: DecompressedSize + " of all profiles of the request", Limit: int64(limit)}
		if wasted > limit {
			r.Err = ofAll
			continue
		}
		b.in.guard(r, func() (err error) {
			p := &r.payload
			if p.Data, err = Decompress(b.lease, p.Data, left); err == nil {
				p.Recording.Labels, err = Decompress(b.lease, p.Recording.Labels, limit)
			}
			exceeded, isLimit := errors.AsType[*pproftranslator.LimitError](err)
			if isLimit && left < limit && exceeded.Limit == int64(left) {
				return ofAll
			}
			return err
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(r.Err, budget.ErrFull):
			return r.Err
		case r.Err == nil:
			left -= len(r.payload.Data)
			continue
		}
		wasted += len(r.payload.Data)
		r.payload.Data = nil // which the lease does not hold
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
