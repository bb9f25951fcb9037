// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// FuzzRequests sends requests to every endpoint: each is accepted or an error of the client, accepted
// payloads conform, and no memory stays reserved.
func FuzzRequests(f *testing.F) {
	t := &testing.T{} // of the helpers, which do not fail
	profile := profiletest.Pprof(t, numbered(3))
	for i, w := range protocols {
		body, headers := w.wrap(t, profile)
		contentType := ""
		if len(headers) > 0 {
			contentType = headers[1]
		}
		_, query, _ := strings.Cut(w.path, "?")
		f.Add(uint8(i), query, contentType, body)
		f.Add(uint8(i), query, contentType, profiletest.Gzip(t, body))
	}
	body, headers := form(t, formPart{"profile", "p", profile}, formPart{"sample_type_config", "c", []byte(`{"cpu":{"units":"u","display-name":"mutex_x","aggregation":"average","cumulative":true}}`)}, formPart{"prev_profile", "p", profile})
	f.Add(uint8(1), "name=app%7Ba=b,__session_id__=1%7D&from=1700000000&until=1700000001000&spyName=gospy&aggregationType=sum", headers[1], body)
	body, headers = form(t, attached("delta-heap.pprof", profiletest.LZ4(t, profile)), attached("metrics.json", nil), event(goEvent))
	f.Add(uint8(5), "", headers[1], body)

	cfg, err := loadConfig("server: {endpoint: 127.0.0.1:0, max_decompressed_size: 1MiB}\nmax_in_flight: 16MiB")
	require.NoError(f, err)
	telemetry := componenttest.NewTelemetry()
	var violations []conformance.Finding
	next := consumer(t, func(_ context.Context, pd pprofile.Profiles) error {
		violations = append(violations, conformance.Check(pd).Violations()...)
		return nil
	})
	r, err := newReceiver(settings(telemetry), cfg, ingest.NewInFlight(int64(cfg.MaxInFlight)), next)
	require.NoError(f, err)
	require.NoError(f, r.Start(context.Background(), componenttest.NewNopHost()))
	f.Cleanup(func() {
		require.NoError(f, r.Shutdown(context.Background()))
		require.NoError(f, telemetry.Shutdown(context.Background()))
	})
	server := sectionOf[*httpserver.Server](r)
	f.Fuzz(func(t *testing.T, way uint8, query, contentType string, body []byte) {
		path, _, _ := strings.Cut(protocols[int(way)%len(protocols)].path, "?")
		request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		request.URL = &url.URL{Path: path, RawQuery: query}
		request.Header.Set("Content-Type", contentType)
		answer := httptest.NewRecorder()
		violations = nil
		server.Handler().ServeHTTP(answer, request)
		if !slices.Contains([]int{200, 202, 204, 400, 413, 415, 429, 501}, answer.Code) {
			t.Errorf("answered with %d: %s", answer.Code, answer.Body)
		}
		if len(violations) > 0 {
			t.Errorf("not conforming: %q", violations)
		}
		if held := r.inFlight.InUse(); held != 0 {
			t.Errorf("%d bytes are still held", held)
		}
	})
}
