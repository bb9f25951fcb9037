// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Without a window, a panic of the next consumer reaches the caller. A retry does not wait for an
// outcome that never comes.
func TestPanicWithoutWindow_P13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &downstream{answer: func(int) error { panic("next consumer") }}
		p := newTestProcessor(t, next, func(c *Config) { c.Window = 0 })
		require.Panics(t, func() { _ = p.ConsumeProfiles(t.Context(), identified(1, 5)) })
		next.answers(nil)
		require.NoError(t, p.ConsumeProfiles(t.Context(), identified(1, 5)))
		require.EqualValues(t, 5, next.total())
		require.NoError(t, p.Shutdown(t.Context()))
	})
	profiletest.Injected(t, "1 panics of the next consumer")
}

// A caller retries if one of several consumers has asked for it.
func TestPermanentErrorOfOneConsumerIsRetryable(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Window = 0 },
		func(c *Config) {
			c.Window, c.Acknowledge, c.RetryOnFailure.Enabled = time.Second, acknowledgeOnFlush, false
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			never := consumererror.NewPermanent(errors.New("never"))
			next := &downstream{}
			next.answers(func(int) error { return errors.Join(never, errors.New("later")) })
			p := newTestProcessor(t, next, change)
			err := p.ConsumeProfiles(t.Context(), identified(1, 5))
			require.ErrorContains(t, err, "later")
			require.False(t, consumererror.IsPermanent(err))
			next.answers(func(int) error { return never })
			require.True(t, consumererror.IsPermanent(p.ConsumeProfiles(t.Context(), identified(1, 5))))
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}
