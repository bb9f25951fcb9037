// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// A large payload is not lost, also if it is larger than the memory that merging keeps.
func TestLargePayloads_P8(t *testing.T) {
	const n = 90_000
	for _, test := range []struct {
		name   string
		id     byte
		change func(*Config)
	}{
		{"on_receive", 1, func(*Config) {}},
		{"without an id", 0, func(*Config) {}},
		{"no duplicates", 1, func(c *Config) { c.DuplicateTTL = 0 }},
		{"no window", 1, func(c *Config) { c.Window = 0 }},
		{"on_flush", 1, onFlush},
	} {
		t.Run(test.name, func(t *testing.T) {
			var next downstream
			p := newTestProcessor(t, &next, func(c *Config) {
				test.change(c)
				c.ShutdownTimeout = time.Hour // it may take long if the machine is busy
			})
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.ManyStacks(n, test.id)))
			if test.name == "on_flush" {
				require.EqualValues(t, n, next.total(), "acknowledged before it was sent")
			}
			require.NoError(t, p.Shutdown(t.Context()))
			require.EqualValues(t, n, next.total())
			profiletest.Account(t, fmt.Sprintf("1 payloads of %d samples", n), n, int(next.total()), 0)
		})
	}
}

// With on_flush, the outcome of a large payload is that of the next consumer, too.
func TestLargePayloadIsRejected_P8(t *testing.T) {
	next := downstream{answer: unavailable}
	p := newTestProcessor(t, &next, func(c *Config) { onFlush(c); c.RetryOnFailure.Enabled, c.ShutdownTimeout = false, time.Hour })
	require.Error(t, p.ConsumeProfiles(t.Context(), payloadtest.ManyStacks(90_000, 1)))
	require.NoError(t, p.Shutdown(t.Context()))
	profiletest.Injected(t, fmt.Sprintf("%d rejections", next.attempts))
}
