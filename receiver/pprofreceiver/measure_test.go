// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// What a push takes is measured, by every way to push.
func TestTranslationIsMeasured(t *testing.T) {
	profile := plain(t, samplePprof("/bin/app", 1))
	for _, w := range protocols {
		b := startTestReceiver(t, serverYAML, consumertest.NewNop())
		require.Equal(t, w.success, b.sendBy(w, profiletest.Gzip(t, profile)).status)
		assert.Equal(t, map[string]int64{"http": int64(len(profile))}, b.counts("otelcol_receiver_pprof_payload_size", "transport"), w.name)
		duration, err := b.telemetry.GetMetric("otelcol_receiver_pprof_translation_duration")
		require.NoError(t, err)
		points := duration.Data.(metricdata.Histogram[float64]).DataPoints
		require.Len(t, points, 1)
		assert.EqualValues(t, 1, points[0].Count, w.name)
		accepted := b.counts("otelcol_receiver_accepted_profile_samples", "transport")
		assert.Equal(t, map[string]int64{"http": 2}, accepted, w.name)
	}
}

// Each refusal is counted once, by its reason.
func TestRejectionsAreCountedByReason(t *testing.T) {
	good := plain(t, samplePprof("/bin/app", 1))
	for _, row := range []struct {
		reason, method, path string
		body                 []byte
		next                 error
	}{
		{reason: "malformed", body: []byte("hello")},
		{reason: "malformed", path: "/v1/pprof?bogus=1", body: good},
		{reason: "unsupported", path: "/ingest?name=app&format=trie", body: []byte("x")},
		{reason: "body_size", body: make([]byte, 3<<20)},
		{reason: "limit", body: profiletest.Gzip(t, make([]byte, 3<<20))},
		{reason: "limit", path: "/v1/pprof?" + strings.Repeat("a&", 300), body: good},
		{reason: "pipeline_retryable", body: good, next: errors.New("not now")},
		{reason: "pipeline_permanent", body: good, next: consumererror.NewPermanent(errors.New("never"))},
		{reason: "method", method: http.MethodGet},
		{reason: "not_found", path: "/", body: good},
	} {
		var next xconsumer.Profiles = consumertest.NewErr(row.next)
		b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 2MiB}", next)
		method, path := row.method, row.path
		if method == "" {
			method = http.MethodPost
		}
		if path == "" {
			path = "/v1/pprof"
		}
		got, err := b.send(method, path, bytes.NewReader(row.body))
		require.NoError(t, err)
		assert.Equal(t, map[string]int64{row.reason: 1}, b.counts("otelcol_receiver_pprof_rejected_requests", "reason"), "%s: %s", row.reason, got.body)
	}
}
