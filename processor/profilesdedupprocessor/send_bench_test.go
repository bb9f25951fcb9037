// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// BenchmarkManyPartitionsBehindASlowConsumer is the time of a window of 100 services, whose next consumer takes 5 ms.
func BenchmarkManyPartitionsBehindASlowConsumer(b *testing.B) {
	next := nextFunc(func(context.Context, pprofile.Profiles) error { time.Sleep(5 * time.Millisecond); return nil })
	p := startProcessor(b, nopSettings(), next, func(c *Config) {
		onFlush(c)
		c.Window, c.SplitBy = time.Millisecond, []string{"service.name"}
	})
	pd := payloadtest.OfServices(payloadtest.ManyStacks(200, 0), 100)
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, p.ConsumeProfiles(b.Context(), pd))
	}
	require.NoError(b, p.Shutdown(context.WithoutCancel(b.Context())))
}
