// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// ofServices is a payload with n resources, each of a service of its own.
func ofServices(n int) pprofile.Profiles {
	pd := payloadtest.With(payloadtest.Interval(1, 1, 1), "service.name", "0")
	for i := 1; i < n; i++ {
		to := pd.ResourceProfiles().AppendEmpty()
		pd.ResourceProfiles().At(0).CopyTo(to)
		to.Resource().Attributes().PutStr("service.name", fmt.Sprint(i))
	}
	return pd
}

// The partitions that are left when shutdown_timeout is over are dropped, and none is
// offered after Shutdown.
func TestShutdownTimeoutAmongPartitions_P9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := downstream{answer: func(int) error {
			time.Sleep(time.Second) // whatever the context says
			return nil
		}}
		p := newTestProcessor(t, &next, func(c *Config) {
			c.SplitBy, c.ShutdownTimeout = []string{"service.name"}, 2500*time.Millisecond
		})
		require.NoError(t, p.ConsumeProfiles(t.Context(), ofServices(100)))
		require.ErrorContains(t, p.Shutdown(t.Context()), "dropped 97 payloads that the next consumer did not accept")
		require.Len(t, next.windows(), 3)
		time.Sleep(time.Hour)
		require.Len(t, next.windows(), 3)
	})
	profiletest.Injected(t, "1 shutdowns with less time than 100 windows need")
}
