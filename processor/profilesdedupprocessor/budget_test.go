// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// While their window is open, payloads count a little in max_in_flight: at a sustained rate, on_flush is accepted as on_receive.
func TestOnFlushIsAcceptedAsOnReceive_A9(t *testing.T) {
	const (
		pushes   = 240 // ten seconds
		interval = time.Second / 24
		limit    = 12 << 20
	)
	p := profiletest.CPUPprof("/bin/app", 1)
	for i := range int64(1000) {
		p.Sample = append(p.Sample, &profile.Sample{Location: p.Sample[0].Location, Value: p.Sample[0].Value, NumLabel: map[string][]int64{"i": {i}}})
	}
	data := profiletest.Pprof(t, p)
	_, report, err := (&pproftranslator.Unmarshaler{}).UnmarshalReport(data)
	require.NoError(t, err)
	require.Greater(t, report.Bytes*5*24, 2*limit, "they do not fit all at once while a window is open")

	accepted, heap := map[string]int64{}, map[string]int64{}
	for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
		synctest.Test(t, func(t *testing.T) {
			next := new(consumertest.ProfilesSink)
			d := newTestProcessor(t, next, func(c *Config) {
				c.Window, c.Acknowledge = 5*time.Second, acknowledge
			})
			in := ingest.New(ingest.Settings{
				Logger:      zap.NewNop(),
				Unmarshaler: &pproftranslator.Unmarshaler{Limits: pproftranslator.Limits{DecompressedSize: 64 << 20}},
				Metrics: ingest.Metrics{
					PayloadSize: noop.Int64Counter{}, TranslationDuration: noop.Float64Histogram{},
					Repairs: noop.Int64Counter{}, Attributes: metric.WithAttributes(),
				},
			}, d)
			b := budget.New(limit)
			var ok atomic.Int64
			var running sync.WaitGroup
			push := func(i int) {
				lease := b.Lease(time.Second)
				defer lease.Release()
				resource := pcommon.NewMap()
				resource.PutInt("push", int64(i/24)) // another payload than before
				r, err := in.TranslateWithin(t.Context(), lease, ingest.Payload{Data: data, Resource: resource, Arrived: time.Now()})
				if err == nil {
					err = in.Pass(t.Context(), r)
				}
				if err == nil {
					ok.Add(1)
				}
			}
			for i := range pushes {
				running.Go(func() { push(i) })
				time.Sleep(interval)
				if i == 110 { // before the window closes
					heap[acknowledge] = profiletest.Heap()
				}
			}
			running.Wait()
			require.NoError(t, d.Shutdown(t.Context()))
			accepted[acknowledge] = ok.Load()
			assert.Zero(t, b.InUse())
		})
	}
	assert.Less(t, heap[acknowledgeOnFlush]-heap[acknowledgeOnReceive], int64(110*budget.Floor), "what was merged is in memory no longer")
	assert.EqualValues(t, pushes, accepted[acknowledgeOnReceive])
	assert.GreaterOrEqual(t, accepted[acknowledgeOnFlush], accepted[acknowledgeOnReceive]*95/100)
}
