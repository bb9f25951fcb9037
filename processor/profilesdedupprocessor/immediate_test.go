// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

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
