// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/pprofservertest"
)

// TestPprofBackendsGetTheSumsOfGooglePprof runs the configurations for Pyroscope and Parca.
func TestPprofBackendsGetTheSumsOfGooglePprof(t *testing.T) {
	parallel(t)
	for _, name := range []string{"pyroscope.yaml", "parca.yaml"} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			backend := pprofservertest.Start(t, nil)
			m := runConfig(t, program(t), "backends/"+name, env{"PPROF_LISTEN": freeAddress(t), "BACKEND_ENDPOINT": backend.URL, "WINDOW": "300ms"})
			want := map[string]map[string]int64{}
			for _, p := range payloads(t) {
				m.push(t, p.service, p.data)
				parsed, err := profile.ParseData(p.data)
				require.NoError(t, err)
				if len(parsed.Sample) > 0 {
					want[p.service] = profiletest.Sums(parsed)
				}
			}
			m.stop(t)
			got := map[string]map[string]int64{}
			for _, r := range backend.TakeAll() {
				if got[r.Service()] == nil {
					got[r.Service()] = map[string]int64{}
				}
				for sampleType, sum := range pprofservertest.Sums(r) {
					got[r.Service()][sampleType] += sum
				}
			}
			assert.Equal(t, want, got)
		})
	}
}

// TestChainOfCollectorsByPprof: the second Collector has the service, the attributes and the sums that the first got.
func TestChainOfCollectorsByPprof(t *testing.T) {
	parallel(t)
	second := start(t, "200ms", "    rotation: {max_age: 100ms}")
	address := freeAddress(t)
	first := run(t, address, "", fmt.Sprintf(`
receivers: {pprof: {server: {endpoint: %s}}}
exporters: {pprof: {endpoint: %q, protocol: http, sending_queue: null}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [pprof], exporters: [pprof]}}
`, address, second.url))
	want := map[string]int64{}
	for _, p := range payloads(t) {
		parsed, err := profile.ParseData(p.data)
		require.NoError(t, err)
		if parsed.TimeNanos == 0 || len(p.data) > 256<<10 {
			continue
		}
		query := url.Values{"service.name": {p.service}, ".region": {"eu"}, "k8s.pod.name": {"a&b"}, "profile_type": {"any"}}
		require.Equal(t, http.StatusNoContent, first.do(t, http.MethodPost, query, p.data).status)
		for sampleType, sum := range profiletest.Sums(parsed) {
			name, _, _ := strings.Cut(sampleType, "/")
			want[p.service+" "+name] = sum
		}
	}
	first.stop(t)
	second.stop(t)
	files := &member{collector: second, read: map[string][][]expand.Profile{}}
	assert.Equal(t, want, totalsOf(files.written(t)))
	for _, p := range files.written(t) {
		assert.Contains(t, p.Resource.String(), "region")
		assert.Contains(t, p.Resource.String(), "a&b")
		assert.Contains(t, p.Scope.String(), "any")
	}
}
