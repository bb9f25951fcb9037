// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"context"
	"sync/atomic"
)

// Countdown is a context that ends when its error has been looked at this often, for tests of loops that look at it. It
// has no channel: contexts made of it do not end with it.
type Countdown struct {
	context.Context

	left atomic.Int64
}

// NewCountdown returns a context whose Err is nil for n calls.
func NewCountdown(n int) *Countdown {
	c := &Countdown{Context: context.Background()}
	c.left.Store(int64(n))
	return c
}

// Err returns context.Canceled once the count has ended.
func (c *Countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}
