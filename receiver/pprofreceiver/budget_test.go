// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// ofSamples is a pprof of so many samples, each with the labels that add sets.
func ofSamples(t *testing.T, n int, add func(s *profile.Sample, i int)) []byte {
	t.Helper()
	p := profiletest.CPUPprof("/bin/app", 1)
	first := p.Sample[0]
	for i := range n {
		s := &profile.Sample{Location: first.Location, Value: first.Value, Label: map[string][]string{}, NumLabel: map[string][]int64{}}
		add(s, i)
		p.Sample = append(p.Sample, s)
	}
	return profiletest.Pprof(t, p)
}

// What becomes many times as large as OTLP is accepted if max_in_flight has room for it. Otherwise the answer says how much
// is needed, how much there is, and the key.
func TestWhatFitsIsAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		data []byte
		fits string
	}{
		"timeline": {ofSamples(t, 10_000, func(s *profile.Sample, i int) {
			s.Label["event"], s.Label["operation"] = []string{"wall"}, []string{fmt.Sprint("op", i%20)}
			s.Label["thread name"], s.Label["thread id"] = []string{fmt.Sprint("worker-", i%16)}, []string{fmt.Sprint(i % 16)}
			s.NumLabel["end_timestamp_ns"] = []int64{1_700_000_000_000_000_000 + int64(i)*1e6}
			s.NumLabel["span id"], s.NumLabel["local root span id"] = []int64{int64(i%500) << 40}, []int64{int64(i%50) << 41}
		}), "41MiB"}, // that of a container of 256 MiB
		"a number of their own": {ofSamples(t, 6_000, func(s *profile.Sample, i int) { s.NumLabel["n"] = []int64{int64(i + 1)} }), "8MiB"},
		"goroutines":            {ofSamples(t, 200_000, func(s *profile.Sample, i int) { s.Label["id"] = []string{fmt.Sprint("goroutine ", i)} }), "256MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			next := &sink{t: t}
			datadog := protocols[len(protocols)-1]
			b := startTestReceiver(t, serverYAML+"max_in_flight: "+test.fits, next)
			got := b.sendBy(datadog, profiletest.Gzip(t, test.data))
			require.Equal(t, http.StatusAccepted, got.status, got.body)
			require.Positive(t, next.SampleCount())

			small := startTestReceiver(t, serverYAML+"max_in_flight: 4MiB", next)
			got = small.sendBy(datadog, profiletest.Gzip(t, test.data))
			if got.status != http.StatusAccepted {
				require.Equal(t, http.StatusRequestEntityTooLarge, got.status)
				require.Regexp(t, `: \d+ bytes are needed, max_in_flight has \d+: `, got.body)
			}
			assert.Zero(t, small.inFlight.InUse())
		})
	}
}

// A payload that the next consumer has merged is in memory no longer while its client waits for the answer, and counts a little.
func TestMergedPayloadsAreFreed_A9(t *testing.T) {
	const pushes = 12
	data := ofSamples(t, 5_000, func(s *profile.Sample, i int) { s.NumLabel["n"] = []int64{int64(i + 1)} })
	for _, w := range protocols {
		t.Run(w.name, func(t *testing.T) {
			merged, answer := make(chan struct{}), make(chan struct{})
			b := startTestReceiver(t, serverYAML+"max_in_flight: 16MiB", consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
				assert.Positive(t, pd.SampleCount())
				budget.Merged(ctx)
				merged <- struct{}{}
				<-answer
				budget.Merged(ctx)
				return nil
			}))
			body, headers := w.wrap(t, data)
			require.Greater(t, len(body), 2*budget.Floor)
			var clients sync.WaitGroup
			push := func() {
				clients.Go(func() { assert.Equal(t, w.success, b.post(w.path, body, headers...).status) })
				<-merged
			}
			push()
			before := profiletest.Heap()
			for range pushes {
				push()
			}
			held := profiletest.Heap() - before
			assert.EqualValues(t, (1+pushes)*budget.Floor, b.inFlight.InUse())
			assert.Less(t, held, int64(pushes*3/2*budget.Floor), "with the client; the body has %d bytes, and the payload 1 MB", len(body))
			close(answer)
			clients.Wait()
			assert.Zero(t, b.inFlight.InUse())
		})
	}
}

// When others hold memory, a push waits for all that it needs, and is translated then, once.
func TestPushesWaitForMemory_M1(t *testing.T) {
	data := ofSamples(t, 5_000, func(s *profile.Sample, i int) { s.NumLabel["n"] = []int64{int64(i + 1)} })
	for _, w := range protocols {
		t.Run(w.name, func(t *testing.T) {
			next := &sink{t: t}
			b := startTestReceiver(t, serverYAML+"max_in_flight: 16MiB", next)
			alone := b.sendBy(w, profiletest.Gzip(t, data))
			require.Equal(t, w.success, alone.status, alone.body)
			others := b.inFlight.Lease(0)
			require.NoError(t, others.Take(others.MaxWork()-1<<20))
			time.AfterFunc(200*time.Millisecond, others.Release)
			got := b.sendBy(w, profiletest.Gzip(t, data))
			require.Equal(t, w.success, got.status, got.body)
			require.Len(t, next.idsOf(), next.AllProfiles()[0].ProfileCount(), "the same profile IDs")
			assert.Zero(t, b.inFlight.InUse())
		})
	}
}
