// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// requireGoroutineTime checks a translated execution trace and returns the time that goroutines waited for channels.
func requireGoroutineTime(t *testing.T, pd pprofile.Profiles) (channels time.Duration) {
	t.Helper()
	profiles := profiletest.Expand(t, pd)
	require.NotEmpty(t, profiles)
	for _, p := range profiles {
		assert.Equal(t, "goroutine_time", p.Type)
		assert.Equal(t, "nanoseconds", p.Unit)
		assert.Equal(t, "goroutine_time", expand.Text(p.Scope.Attributes, attrkey.ProfileType))
		assert.Equal(t, "delta", expand.Text(p.Attributes, attrkey.Temporality))
		assert.Equal(t, "checkout", expand.Text(p.Resource.Attributes, "service.name"))
		assert.NotEmpty(t, p.ProfileID)
		assert.WithinDuration(t, time.Now(), time.Unix(0, int64(p.Time)), time.Minute)
		for _, s := range p.Samples {
			assert.Equal(t, timing.MarksStart, expand.Text(s.Attributes, timing.TimestampMarksAttribute))
			if expand.Text(s.Attributes, timing.ReasonAttribute) == timing.Channel {
				channels += time.Duration(s.Sum.Int64())
			}
		}
	}
	return channels
}

func TestExecutionTracesByEveryWayIn(t *testing.T) {
	trace := profiletest.GoTrace(t)
	tags := event(`{"start":"2023-11-14T22:13:20Z","end":"2023-11-14T22:14:20Z","tags_profiler":"service:checkout","family":"go","version":"4"}`)
	ids := map[string]bool{}
	for name, send := range map[string]func(b *testReceiver) answer{
		"v1/pprof":       func(b *testReceiver) answer { return b.push("?service.name=checkout", trace) },
		"v1/pprof, gzip": func(b *testReceiver) answer { return b.push("?service.name=checkout", profiletest.Gzip(t, trace)) },
		"datadog": func(b *testReceiver) answer {
			return b.sendForm(httpserver.DatadogPath, attached("go.trace", trace), tags)
		},
		"connect": func(b *testReceiver) answer {
			return b.connect(profiletest.PushRequest(profiletest.RawSeries(trace, "service_name", "checkout", "__name__", "trace")))
		},
	} {
		pd := passedOn(t, "", send)
		assert.Greater(t, requireGoroutineTime(t, pd), profiletest.GoTraceWait/2, name)
		if name == "v1/pprof" || name == "v1/pprof, gzip" {
			ids[fmt.Sprint(profiletest.Expand(t, pd)[0].ProfileID)] = true
		}
	}
	assert.Len(t, ids, 1, "a trace that is sent again has the same IDs")
}

func TestADamagedExecutionTraceIsKeptUpToTheDamage_J6(t *testing.T) {
	next := &sink{t: t}
	b := startTestReceiver(t, serverYAML, next)
	require.Equal(t, http.StatusNoContent, b.push("?service.name=checkout", append(profiletest.GoTrace(t), 99)).status)
	requireGoroutineTime(t, next.only())
	assert.Equal(t, map[string]int64{"damaged_trace": 1}, b.counts("otelcol_receiver_pprof_repairs", "repair"))
	logged := b.logs.FilterMessage("Execution trace is damaged; accepting what precedes the damage").All()
	require.Len(t, logged, 1)

	for body, says := range map[string]string{
		"go 1.21 trace\x00\x00\x00":        "the trace is of Go 1.21 or before Go 1.22: must be of Go 1.22 or later",
		"go 1.26 trace\x00\x00\x00garbage": "expected batch event, got event 103",
	} {
		got := b.push("?service.name=checkout", []byte(body))
		assert.Equal(t, http.StatusBadRequest, got.status)
		assert.Contains(t, got.body, says)
	}
}

func TestExecutionTracesAreScrapedFromTargetsThatAskForThem(t *testing.T) {
	handler := http.NewServeMux()
	handler.HandleFunc("/debug/pprof/trace", func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "seconds=1", r.URL.RawQuery)
		pprof.Trace(w, r)
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	next := &sink{t: t}
	b := startTestReceiver(t, fmt.Sprintf("remote: {collection_interval: 1500ms, targets: [{endpoint: %q, profiles: [trace], resource_attributes: {service.name: checkout}}]}", server.URL), next)
	require.Eventually(t, func() bool { return len(next.AllProfiles()) > 0 }, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, b.pprofReceiver.Shutdown(t.Context()))
	requireGoroutineTime(t, next.AllProfiles()[0])
}
