// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"
)

// Batch are the payloads of one request.
type Batch struct {
	in       *Ingester
	arrived  time.Time
	seen     occurrences
	prepared []*Prepared
}

// NewBatch returns a Batch without payloads.
func (in *Ingester) NewBatch() *Batch {
	return &Batch{in: in, arrived: time.Now(), seen: occurrences{}}
}

// Prepare decompresses a payload to at most limit bytes, translates it and adds it to the
// batch. It is for use within Reservation.Work. A panic is a *PanicError. Prepare returns
// the decompressed size in bytes.
func (b *Batch) Prepare(ctx context.Context, p Payload, limit int, r *Reservation) (size int, err error) {
	p.seen = b.seen
	if p.Arrived.IsZero() {
		p.Arrived = b.arrived
	}
	service := ""
	if name, ok := p.Resource.Get(AttributeServiceName); ok {
		service = name.AsString()
	}
	var prepared *Prepared
	err = b.in.recovering(service, p.ProfileType, func() (err error) {
		prepared, err = b.in.prepare(ctx, p, limit, r)
		return err
	})
	if err != nil {
		return 0, err
	}
	b.prepared = append(b.prepared, prepared)
	return prepared.size, nil
}

// Next returns a batch without payloads for the rest of the request.
func (b *Batch) Next() *Batch {
	return &Batch{in: b.in, arrived: b.arrived, seen: maps.Clone(b.seen)}
}

// Pass passes all payloads to the next consumer. It does so concurrently, so that a client
// waits only once for a next consumer that collects payloads for a while before it
// answers. A panic concerns its payload only, whose error is then a *PanicError. The
// errors are in the order of the payloads.
func (b *Batch) Pass(ctx context.Context) []error {
	errs := make([]error, len(b.prepared))
	pass := func(i int) {
		t := b.prepared[i]
		errs[i] = b.in.recovering(t.service, t.profileType, func() error { return b.in.Pass(ctx, t) })
	}
	if len(errs) == 1 { // as most requests have
		pass(0)
		return errs
	}
	var running sync.WaitGroup
	for i := range b.prepared {
		running.Go(func() { pass(i) })
	}
	running.Wait()
	return errs
}

// recovering calls do for a profile of a service and turns a panic into an error.
func (in *Ingester) recovering(service, profileType string, do func() error) (err error) {
	defer Recover(in.settings.Logger, &err, zap.String("service", service), zap.String("profile", profileType))
	return do()
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
