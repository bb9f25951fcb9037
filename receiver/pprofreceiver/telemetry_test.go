// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
)

// Metrics are by the ID of the receiver, in all sections.
func TestMetricsTellReceiversApart(t *testing.T) {
	served := profiletest.Gzip(t, profiletest.Pprof(t, samplePprof("/bin/app", 1)))
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(served)
	}))
	defer target.Close()
	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
	read := func() map[string]map[string]int64 {
		return profiletest.MetricsBy(t, telemetry, "otelcol_receiver_pprof_", "receiver")
	}
	strange := samplePprof("/bin/app", 1)
	strange.TimeNanos = -1
	empty := samplePprof("/bin/app", 1)
	empty.Sample = nil
	var all []*testReceiver
	for i, name := range []string{"", "other"} {
		dir := t.TempDir()
		for n := range 1 + i {
			writeProfile(t, filepath.Join(dir, strconv.Itoa(n)+".pb.gz"), 1, time.Now().Add(-time.Hour))
		}
		cfg, err := loadConfig(serverYAML + fileYAML(dir, "") +
			"remote: {targets: [{endpoint: '" + target.URL + "', profiles: [heap]}], collection_interval: 30ms}\n")
		require.NoError(t, err)
		set := settings(telemetry)
		set.ID = component.NewIDWithName(metadata.Type, name)
		r, err := newReceiver(set, cfg, ingest.NewInFlight(int64(cfg.MaxInFlight)), newSink(t))
		require.NoError(t, err)
		b := &testReceiver{pprofReceiver: r, server: sectionOf[*httpserver.Server](r), t: t, client: &http.Client{Transport: &http.Transport{}}, telemetry: telemetry}
		require.NoError(t, b.Start(context.Background(), componenttest.NewNopHost()))
		for range 1 + i {
			require.Equal(t, 204, b.push("", profiletest.Pprof(t, strange)).status)
			require.Equal(t, 204, b.push("", profiletest.Pprof(t, empty)).status)
			require.Equal(t, 400, b.push("", []byte("hello")).status)
			require.Equal(t, 202, b.sendForm(httpserver.DatadogPath, attached("metrics.json", nil), event("{}")).status)
		}
		all = append(all, b)
	}
	by := func(n int64) map[string]int64 { return map[string]int64{"pprof": n, "pprof/other": 2 * n} }
	require.Eventually(t, func() bool {
		got := read()
		return maps.Equal(got["files"], by(1)) && maps.Equal(got["target_up"], map[string]int64{"pprof": 1, "pprof/other": 1})
	}, time.Minute, time.Millisecond)
	for _, b := range all {
		b.client.CloseIdleConnections()
		require.NoError(t, b.Shutdown(context.Background()))
	}

	got := read()
	for name, n := range map[string]int64{"requests": 4, "rejected_requests": 1, "repairs": 1, "empty_profiles": 2, "skipped_attachments": 1, "files": 1} {
		assert.Equal(t, by(n), got[name], name)
	}
	for _, name := range []string{"payload_size", "translation_duration", "scrapes", "scrape_duration"} {
		assert.Len(t, got[name], 2, name)
	}
	assert.Len(t, got, 10, "all but target_up, which is not observed any more")
}
