// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// Metrics have the ID of the receiver, in all sections.
func TestMetricsTellReceiversApart(t *testing.T) {
	served := profiletest.Gzip(t, profiletest.Pprof(t, samplePprof("/bin/app", 1)))
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(served)
	}))
	defer target.Close()
	dir := t.TempDir()
	writeProfile(t, filepath.Join(dir, "a.pb.gz"), 1, time.Now().Add(-time.Hour))
	b := startTestReceiver(t, serverYAML+fileYAML(dir, "")+
		"remote: {targets: [{endpoint: '"+target.URL+"', profiles: [heap]}], collection_interval: 30ms}\n", newSink(t))
	strange, empty := samplePprof("/bin/app", 1), samplePprof("/bin/app", 1)
	strange.TimeNanos, empty.Sample = -1, nil
	require.Equal(t, 204, b.push("", profiletest.Pprof(t, strange)).status)
	require.Equal(t, 204, b.push("", profiletest.Pprof(t, empty)).status)
	require.Equal(t, 400, b.push("", []byte("hello")).status)
	require.Equal(t, 202, b.sendForm(httpserver.DatadogPath, attached("metrics.json", nil), event("{}")).status)

	var got map[string]map[string]int64
	require.Eventually(t, func() bool {
		got = profiletest.MetricsBy(t, b.telemetry, "otelcol_receiver_pprof_", "receiver")
		return got["files"] != nil && got["target_up"] != nil
	}, time.Minute, time.Millisecond)
	for _, name := range []string{"target_up", "payload_size", "translation_duration", "scrapes", "scrape_duration"} {
		assert.Contains(t, got[name], receiverID.String(), name)
		delete(got, name)
	}
	assert.Equal(t, map[string]map[string]int64{
		"requests": {"pprof/test": 4}, "rejected_requests": {"pprof/test": 1}, "repairs": {"pprof/test": 1},
		"empty_profiles": {"pprof/test": 2}, "skipped_attachments": {"pprof/test": 1}, "files": {"pprof/test": 1},
	}, got)
}
