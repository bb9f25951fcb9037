// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// Partitions that remain after shutdown_timeout are dropped, and none is sent after Shutdown.
func TestShutdownTimeoutAmongPartitions_P9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := downstream{answer: func(int) error {
			time.Sleep(time.Second) // whatever the context says
			return nil
		}}
		p := newTestProcessor(t, &next, func(c *Config) {
			c.SplitBy, c.ShutdownTimeout = []string{"service.name"}, 2500*time.Millisecond
		})
		require.NoError(t, p.ConsumeProfiles(t.Context(), ofServices(payloadtest.Interval(1, 1, 1), 100)))
		require.ErrorContains(t, p.Shutdown(t.Context()), "dropped 97 payloads that the next consumer did not accept")
		require.Len(t, next.windows(), 3)
		time.Sleep(time.Hour)
		require.Len(t, next.windows(), 3)
	})
	profiletest.Injected(t, "1 shutdowns with less time than 100 windows need")
}
