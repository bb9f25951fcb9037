// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each push is a whole profile without a time. What was rejected is not counted as accepted.
func TestRun(t *testing.T) {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Value: []int64{7}}},
		TimeNanos:  5,
	}
	var data bytes.Buffer
	require.NoError(t, p.Write(&data))
	body, err := NewBody(data.Bytes())
	require.NoError(t, err)
	var received, ofSecond atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := profile.Parse(r.Body)
		if assert.NoError(t, err) && assert.Len(t, p.Sample, 1) {
			assert.Equal(t, []int64{7}, p.Sample[0].Value)
			assert.Zero(t, p.TimeNanos)
		}
		if r.URL.Query().Get("service.name") == "load-1" {
			ofSecond.Add(1)
		}
		w.WriteHeader(http.StatusNoContent)
		if received.Add(1)%4 == 0 {
			panic(http.ErrAbortHandler)
		}
	}))
	defer server.Close()
	o := Options{URL: server.URL, Bodies: []Body{body}, Clients: 3, Rate: 200, Duration: 200 * time.Millisecond, Services: 2, Timeout: time.Minute}
	result, err := Run(t.Context(), o)
	require.NoError(t, err)
	assert.EqualValues(t, 40, received.Load(), "of 200 a second in 200 ms")
	assert.EqualValues(t, 20, ofSecond.Load())
	assert.Equal(t, 30, result.Accepted())
	assert.Len(t, result.Latencies, 30)
	require.Error(t, result.FirstError)
}
