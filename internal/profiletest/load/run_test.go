// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func bodies(t *testing.T) []Body {
	t.Helper()
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Value: []int64{7}}},
		TimeNanos:  5,
	}
	var gzipped, plain bytes.Buffer
	require.NoError(t, p.Write(&gzipped))
	require.NoError(t, p.WriteUncompressed(&plain))
	var all []Body
	for _, data := range [][]byte{gzipped.Bytes(), plain.Bytes()} {
		body, err := NewBody(data)
		require.NoError(t, err)
		assert.Equal(t, plain.Len(), body.PprofSize)
		all = append(all, body)
	}
	return all
}

// Each push is a whole profile, of another time; what was rejected is not counted as
// accepted; services take turns.
func TestRun(t *testing.T) {
	var mu sync.Mutex
	times, services, received := map[int64]bool{}, map[string]int{}, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := profile.Parse(r.Body)
		mu.Lock()
		defer mu.Unlock()
		received++
		if assert.NoError(t, err) && assert.Len(t, p.Sample, 1) {
			assert.Equal(t, []int64{7}, p.Sample[0].Value)
			assert.False(t, times[p.TimeNanos], "duplicate time")
			times[p.TimeNanos] = true
		}
		services[r.URL.Query().Get("service.name")]++
		if received%4 == 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	for _, rate := range []float64{0, 200} {
		mu.Lock()
		before := received
		mu.Unlock()
		result, err := Run(t.Context(), Options{URL: server.URL, Bodies: bodies(t), Clients: 3, Rate: rate, Duration: 200 * time.Millisecond, Services: 2, Timeout: time.Minute})
		require.NoError(t, err)
		require.NoError(t, result.FirstError)
		got := received - before
		assert.Positive(t, got)
		assert.Equal(t, got, result.Accepted()+result.Statuses[http.StatusTooManyRequests])
		assert.Len(t, result.Latencies, got)
		assert.LessOrEqual(t, result.Percentile(50), result.Percentile(99))
		assert.Positive(t, result.Bytes)
		if rate > 0 {
			assert.Equal(t, 40, got, "of 200 a second in 200 ms")
		}
	}
	assert.Len(t, services, 2)
}

func TestRunFails(t *testing.T) {
	good := Options{URL: "http://127.0.0.1:1/v1/pprof", Bodies: bodies(t), Clients: 1, Rate: 20, Duration: 100 * time.Millisecond, Services: 1, Timeout: time.Second}
	result, err := Run(t.Context(), good)
	require.NoError(t, err)
	require.Error(t, result.FirstError, "no server listens")
	assert.Zero(t, result.Accepted())

	wrong := good
	wrong.URL = "localhost:4040"
	_, err = Run(t.Context(), wrong)
	require.ErrorContains(t, err, "http://localhost:4040/v1/pprof")
	wrong = good
	wrong.Bodies = nil
	_, err = Run(t.Context(), wrong)
	require.Error(t, err)
	_, err = NewBody([]byte{0x1f, 0x8b, 0})
	require.Error(t, err)
}
