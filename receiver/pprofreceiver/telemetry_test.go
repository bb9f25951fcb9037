// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// The first accepted profile of each service is logged, and the first without service.name of each sender.
func TestFirstProfilesAreLogged(t *testing.T) {
	p := profiletest.CPUPprof("/bin/app", 3)
	b := startTestReceiver(t, serverYAML, consumertest.NewNop())
	for _, query := range []string{"", "?service.name=a", "", "?service.name=a", "?service.name=b"} {
		require.Equal(t, http.StatusNoContent, b.push(query, profiletest.Pprof(t, p)).status)
	}
	const first = "Received the first profile of a service"
	at := time.Unix(0, p.TimeNanos).UTC().Format(time.RFC3339) // an old profile is found at its time
	for i, entry := range b.logs.FilterMessage(first).All() {
		assert.Equal(t, zap.InfoLevel, entry.Level)
		service := []string{"unknown_service:app", "a", "b"}[i]
		assert.Equal(t, map[string]any{"service": service, "sender": "127.0.0.1", "samples": int64(2), "time": at}, entry.ContextMap())
	}
	assert.Equal(t, 3, b.logs.FilterMessage(first).Len())
	warned := b.logs.FilterMessage("Profile without service.name; not logged again for this sender").All()
	require.Len(t, warned, 1)
	assert.Equal(t, map[string]any{"sender": "127.0.0.1", "service": "unknown_service:app"}, warned[0].ContextMap())

	b = startTestReceiver(t, serverYAML, consumertest.NewErr(errors.New("away")))
	require.Equal(t, http.StatusServiceUnavailable, b.push("?service.name=a", profiletest.Pprof(t, p)).status)
	assert.Zero(t, b.logs.FilterMessage(first).Len(), "it was not accepted")
}

func TestDisconnectedClientIsLogged(t *testing.T) {
	b := startTestReceiver(t, serverYAML, newGate(t, consumertest.NewNop()))
	client := http.Client{Timeout: 100 * time.Millisecond}
	_, err := client.Post(b.url("/v1/pprof?service.name=a"), "application/octet-stream", bytes.NewReader(profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3)))) //nolint:bodyclose // there is no response
	require.Error(t, err)
	const warning, says = "Rejected requests: pipeline_retryable", "the client disconnected, or the receiver stopped, before the pipeline accepted the profile"
	require.Eventually(t, func() bool { return b.logs.FilterMessage(warning).FilterField(zap.String("error", says)).Len() == 1 }, time.Minute, time.Millisecond)
}

func TestPipelineThatDoesNotAnswerIsUnavailableInTime(t *testing.T) {
	b := startTestReceiver(t, "server: {endpoint: 'localhost:0', write_timeout: 1s}", newGate(t, consumertest.NewNop()))
	r := b.push("?service.name=a", profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3)))
	assert.Equal(t, http.StatusServiceUnavailable, r.status)
	assert.Contains(t, r.body, "within nine tenths of write_timeout, retry")
}

// Each section says that it has started, and its metrics have the ID of the receiver.
func TestMetricsTellReceiversApart(t *testing.T) {
	served := profiletest.Gzip(t, profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1)))
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(served)
	}))
	defer target.Close()
	b := startTestReceiver(t, serverYAML+
		"remote: {targets: [{endpoint: '"+target.URL+"', profiles: [heap]}], collection_interval: 30ms}\n", &sink{t: t})
	for _, message := range []string{"Started pprof HTTP server", "Started scraping"} {
		assert.Equal(t, 1, b.logs.FilterMessage(message).Len(), message)
	}
	strange, empty := profiletest.CPUPprof("/bin/app", 1), profiletest.CPUPprof("/bin/app", 1)
	strange.TimeNanos, empty.Sample = -1, nil
	require.Equal(t, 204, b.push("", profiletest.Pprof(t, strange)).status)
	require.Equal(t, 204, b.push("", profiletest.Pprof(t, empty)).status)
	require.Equal(t, 400, b.push("", []byte("hello")).status)
	require.Equal(t, 202, b.sendForm(httpserver.DatadogPath, attached("metrics.json", nil), event("{}")).status)

	var got map[string]map[string]int64
	require.Eventually(t, func() bool {
		got = profiletest.MetricsBy(t, b.telemetry, "otelcol_receiver_pprof_", "receiver")
		return got["target_up"] != nil
	}, time.Minute, time.Millisecond)
	for _, name := range []string{"target_up", "payload_size", "translation_duration", "scrapes", "scrape_duration"} {
		assert.Contains(t, got[name], receiverID.String(), name)
		delete(got, name)
	}
	assert.Equal(t, map[string]map[string]int64{
		"requests": {"pprof/test": 4}, "rejected_requests": {"pprof/test": 1}, "repairs": {"pprof/test": 1},
		"skipped_attachments": {"pprof/test": 1},
	}, got)
}
