// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"fmt"
	"math/big"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// ofServices is a payload with n resources, each of a service of its own.
func ofServices(n int) pprofile.Profiles {
	pd := of(interval(1, 1, 1), "service.name", "0")
	for i := 1; i < n; i++ {
		to := pd.ResourceProfiles().AppendEmpty()
		pd.ResourceProfiles().At(0).CopyTo(to)
		to.Resource().Attributes().PutStr("service.name", fmt.Sprint(i))
	}
	return pd
}

// What many partitions cost grows with their number and not with its square.
func TestSplitByManyPartitions(t *testing.T) {
	settings := defaultSettings()
	settings.splitBy = []string{"service.name"}
	cost := func(n int) uint64 {
		b := newBatch(settings)
		var im importer
		touched, err := im.merge(b.window, ofServices(n), nil)
		require.NoError(t, err)
		require.Len(t, touched, n)
		for _, key := range touched {
			b.partition(key)
		}
		var start, end runtime.MemStats
		runtime.ReadMemStats(&start)
		e := newEmitter(b.window)
		for _, part := range b.ordered() {
			require.Equal(t, 1, e.partition(part.key).ProfileCount())
		}
		runtime.ReadMemStats(&end)
		return end.TotalAlloc - start.TotalAlloc
	}
	few, many := cost(500), cost(4000)
	t.Logf("500 partitions: %d bytes; 4000: %d", few, many)
	require.Less(t, many, 16*few)
}

// slow takes a second for each payload, whatever its context says.
type slow struct{ attempts atomic.Int32 }

func (*slow) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *slow) ConsumeProfiles(context.Context, pprofile.Profiles) error {
	time.Sleep(time.Second)
	s.attempts.Add(1)
	return nil
}

// The partitions that are left when shutdown_timeout is over are dropped, and none is
// offered after Shutdown.
func TestP9_ShutdownAmongPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := slow{}
		p := newTestProcessor(t, &next, func(c *Config) {
			c.SplitBy, c.ShutdownTimeout = []string{"service.name"}, 2500*time.Millisecond
		})
		require.NoError(t, p.ConsumeProfiles(t.Context(), ofServices(100)))
		require.ErrorContains(t, p.Shutdown(t.Context()), "97 windows were not accepted")
		require.EqualValues(t, 3, next.attempts.Load())
		time.Sleep(time.Hour)
		require.EqualValues(t, 3, next.attempts.Load())
	})
	profiletest.Injected(t, "1 shutdowns with less time than 100 windows need")
}

// Rebased mappings begin at the least address of their own payload: what comes of one
// service does not depend on the others, in whichever payloads they came.
func TestP15_BasesOfEachPartition(t *testing.T) {
	loaded := func(service string, start, address uint64) profiletest.Expanded {
		return profiletest.Expanded{
			Resource: profiletest.Entity{Attributes: []profiletest.Attribute{{Key: "service.name", Value: service}}},
			Type:     "cpu", Unit: "nanoseconds", Time: 1, Duration: 1,
			Samples: []*profiletest.Sample{{
				Stack: []*profiletest.Frame{{Address: address, Mapping: profiletest.Mapping{
					Start: start, Limit: start + 0x1000, File: "/bin/a",
				}}},
				Sum: big.NewInt(1),
			}},
		}
	}
	settings := defaultSettings()
	settings.splitBy = []string{"service.name"}
	settings.coarsening.RebaseMappings = true
	first := func(payloads ...[]profiletest.Expanded) []byte {
		w := newWindow(settings)
		var im importer
		for _, all := range payloads {
			pd, err := profiletest.Build(all)
			require.NoError(t, err)
			require.NoError(t, im.add(w, pd))
		}
		pd := of(interval(1, 1, 1), "service.name", "a")
		out := newEmitter(w).partition(settings.partitionOf(pd.ResourceProfiles().At(0).Resource().Attributes()))
		profiletest.RequireConforms(t, out)
		return marshal(t, out)
	}
	type payload = []profiletest.Expanded
	a, b := loaded("a", 0x5000, 0x5010), loaded("b", 0x3000, 0x3010)
	outside := loaded("b", 0, 0x2000)
	want := first(payload{a})
	require.Equal(t, want, first(payload{a}, payload{b}))
	require.Equal(t, want, first(payload{a, b}))
	require.Equal(t, want, first(payload{b, a, outside}))
	require.Equal(t, want, first(payload{outside}, payload{b, a}))
	least := first(payload{a, loaded("a", 0x4000, 0x4020)})
	require.NotEqual(t, want, least)
	require.Equal(t, least, first(payload{a, b}, payload{loaded("a", 0x4000, 0x4020), b}))
	profiletest.Injected(t, "6 orders and splits")
}
