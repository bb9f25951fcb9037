// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "context"

// Floor is how many bytes a payload counts after Merged: its goroutine, request and connection are still there.
const Floor = 32 << 10

// call is one call of the next consumer with a payload. Its fields are guarded by the mutex of the budget.
type call struct {
	lease *Lease
	bytes int64 // of the payload, which the lease has taken; 0 after the end
}

type callKey struct{}

// Call returns a context for a call of the next consumer with a payload, for which the lease has taken so many bytes. At the end of
// the call, end must be called: it frees the bytes. The caller keeps no reference to the payload during the call, so that
// memory that Merged frees is free in truth.
func (l *Lease) Call(ctx context.Context, bytes int64) (_ context.Context, end func()) {
	c := &call{l, bytes}
	return context.WithValue(ctx, callKey{}, c), func() { c.shrink(0) }
}

// Merged says that the payload of the call with this context, or with one derived from it, has been copied and is no longer
// referred to, while the call goes on. It counts Floor from then on. The copy must be counted elsewhere before. A context without a
// lease, a second call, and one after the end have no effect. Several consumers of one payload, which have the
// same context, count as one: the first to call Merged does so for all.
func Merged(ctx context.Context) {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		c.shrink(Floor)
	}
}

func (c *call) shrink(bytes int64) {
	c.lease.budget.mu.Lock()
	defer c.lease.budget.mu.Unlock()
	if freed := c.bytes - bytes; freed > 0 {
		c.bytes = bytes
		c.lease.free(freed)
	}
}
