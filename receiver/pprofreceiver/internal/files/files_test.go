// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
)

// TestFiles* and the tests of row R17 in the package of the receiver run a Reader.

func TestPathAttributes(t *testing.T) {
	for _, test := range []struct {
		expression, path string
		want             map[string]string
	}{
		{"", "/x/a.pb", map[string]string{}},
		{"^/x/(?P<service_name>[^/]+)/(?P<service_instance_id>[^/]+)/", "/x/checkout/7/a.pb.gz", map[string]string{"service.name": "checkout", "service.instance.id": "7"}},
		{`(?P<service_name>[^/]+)-(?P<host_name>[^/-]+)[.](?P<profile_type>[^/.]+)[.]pb$`, "/x/a/b/check-out-h1.cpu.pb", map[string]string{"service.name": "check-out", "host.name": "h1", "profile.type": "cpu"}},
		{"(?P<restart__count>[0-9]+)", "/x/5", map[string]string{"restart_count": "5"}},
		{"/(?:a/(?P<service_name>[^/]+)|b/(?P<host_name>[^/]+))/", "/b/h/x", map[string]string{"host.name": "h"}},
		{"^/y/(?P<service_name>[^/]+)", "/x/5", map[string]string{}},
		{"^/x/(?P<service_name>[^/]+)", "/x/a\xff", map[string]string{"service.name": "a\ufffd"}},
	} {
		r := &Reader{pathAttributes: regexp.MustCompile(test.expression), logger: zap.NewNop()}
		got, matches := r.attributes(test.path)
		assert.Equal(t, test.want, got, test.expression)
		assert.Equal(t, !strings.HasPrefix(test.expression, "^/y"), matches, test.expression)
	}
}

// A file at whose content the translator panics would make it panic at each retry.
func TestFileThatPanicsIsSkipped_R17(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.pb.gz")
	profiletest.WriteAt(t, path, []byte("content"), time.Now().Add(-time.Hour))
	settings, telemetry, logs := profiletest.Observe(t)
	metrics, err := section.NewTelemetry(settings, component.NewID(metadata.Type))
	require.NoError(t, err)
	config := DefaultConfig()
	config.Watch.Include = []string{filepath.ToSlash(dir) + "/*"}
	r := New(config, section.Settings{InFlight: budget.New(64 << 20), Telemetry: settings, Metrics: metrics},
		ingest.New(ingest.Settings{Logger: settings.Logger}, consumertest.NewNop())) // without an Unmarshaler, it panics
	for range 5 {
		r.Poll(t.Context())
	}
	panics := logs.FilterMessage("Panic while processing a profile").All()
	require.Len(t, panics, 1)
	assert.Equal(t, path, panics[0].ContextMap()["path"])
	assert.Equal(t, 1, logs.FilterMessage("Skipping file until it changes").Len())
	assert.Equal(t, map[string]int64{"panic": 1}, profiletest.MetricsBy(t, telemetry, "otelcol_receiver_pprof_files", "outcome")[""])
	profiletest.Injected(t, "1 panics")
}
