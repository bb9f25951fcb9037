// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// FuzzRequests sends requests to every endpoint: each is accepted or an error of the client, accepted
// payloads conform, and no memory stays reserved.
func FuzzRequests(f *testing.F) {
	profile := profiletest.Pprof(f, numbered(3))
	seed := func(protocol int, query string, body []byte, headers []string) {
		f.Add(uint8(protocol), query, strings.Join(headers, " "), body)
	}
	for i, w := range protocols {
		body, headers := w.wrap(f, profile)
		_, query, _ := strings.Cut(w.path, "?")
		seed(i, query, body, headers[min(1, len(headers)):])
		seed(i, query, profiletest.Gzip(f, body), headers[min(1, len(headers)):])
	}
	body, headers := profiletest.Form(f, part("profile", "p", profile), part("sample_type_config", "c", []byte(`{"cpu":{"units":"u","display-name":"mutex_x","aggregation":"average","cumulative":true}}`)), part("prev_profile", "p", profile))
	seed(1, "name=app%7Ba=b,__session_id__=1%7D&from=1700000000&until=1700000001000&spyName=gospy&aggregationType=sum", body, headers[1:])
	body, headers = profiletest.Form(f, attached("delta-heap.pprof", profiletest.LZ4(f, profile)), attached("metrics.json", nil), event(goEvent))
	seed(5, "", body, headers[1:])

	var violations []conformance.Finding
	b := startTestReceiver(f, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 1MiB}\nmax_in_flight: 16MiB",
		consumer(f, func(_ context.Context, pd pprofile.Profiles) error {
			violations = append(violations, conformance.Check(pd).Violations()...)
			return nil
		}))
	f.Fuzz(func(t *testing.T, way uint8, query, contentType string, body []byte) {
		path, _, _ := strings.Cut(protocols[int(way)%len(protocols)].path, "?")
		request := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		request.URL = &url.URL{Path: path, RawQuery: query}
		request.Header.Set("Content-Type", contentType)
		answer := httptest.NewRecorder()
		violations = nil
		b.server.Handler().ServeHTTP(answer, request)
		assert.Contains(t, []int{200, 202, 204, 400, 413, 415, 429, 501}, answer.Code, answer.Body)
		assert.Empty(t, violations)
		assert.Zero(t, b.inFlight.InUse())
	})
}
