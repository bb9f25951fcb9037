// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/metadata"
)

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{}":                              "directories is []: must be a list of directories with debug files, unless debuginfod::urls has a server",
		"debuginfod: {urls: ['ftp://x']}": "debuginfod::urls[0] is",
		"debuginfod: {urls: ['http://x'], endpoint: 'http://y'}": "debuginfod::endpoint is",
		"{directories: [/x], demangle: long}":                    `demangle is "long": must be`,
		"{directories: [/x], max_memory: 1MiB}":                  "max_memory is 1MiB: must be at least 16MiB",
		"directory: /x":                                          "unknown key directory",
	})
}

// TestPayloadsPassAndAreCounted: a payload without native frames passes unchanged, one with them is counted by outcome.
func TestPayloadsPassAndAreCounted(t *testing.T) {
	set := processortest.NewNopSettings(metadata.Type)
	settings, telemetry, logs := profiletest.Observe(t)
	set.TelemetrySettings = settings
	cfg := createDefaultConfig().(*Config)
	cfg.Directories, cfg.Cache.Directory, cfg.Timeout = []string{t.TempDir()}, t.TempDir(), time.Minute
	const damaged = "00112233445566778899"
	profiletest.WriteAt(t, filepath.Join(cfg.Directories[0], ".build-id", damaged[:2], damaged[2:]+".debug"), []byte("\x7fELF"), time.Now())
	sink := new(consumertest.ProfilesSink)
	p, err := NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.True(t, p.Capabilities().MutatesData)

	plain := profiletest.OneOfEach()
	marshalled := profiletest.Proto(t, plain)
	require.NoError(t, p.ConsumeProfiles(t.Context(), plain))
	require.Equal(t, marshalled, profiletest.Proto(t, sink.AllProfiles()[0]))

	payload := native(t, damaged)
	for range 2 {
		require.NoError(t, p.ConsumeProfiles(t.Context(), payload))
	}
	p.(*symbolizeProcessor).built("aa", &symbolize.IncompleteError{})
	p.(*symbolizeProcessor).built("bb", symbolize.ErrNotFound)
	assert.Equal(t, map[string]int64{"failed": 2}, profiletest.MetricsBy(t, telemetry, "otelcol_processor_symbolize_locations", "outcome")[""])
	assert.Equal(t, map[string]int64{"failed": 1, "incomplete": 1, "not_found": 1}, profiletest.MetricsBy(t, telemetry, "otelcol_processor_symbolize_files", "result")[""])
	require.NoError(t, p.Shutdown(t.Context()))
	require.Equal(t, 2, logs.Len(), "a file is named once, and one that is not found is not")
	assert.Equal(t, damaged, logs.All()[0].ContextMap()["build_id"])
}

// TestCredentialsStayWithTheDebuginfodServer_A3: one that redirects to another host gets no header of the configuration there.
func TestCredentialsStayWithTheDebuginfodServer_A3(t *testing.T) {
	thief, stolen := profiletest.Thief(t)
	seen := make(chan http.Header, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header
		http.Redirect(w, r, thief+r.URL.Path, http.StatusFound)
	}))
	defer server.Close()
	set := processortest.NewNopSettings(metadata.Type)
	settings, telemetry, logs := profiletest.Observe(t)
	set.TelemetrySettings = settings
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig(`
debuginfod: {urls: ['`+server.URL+`'], headers: {authorization: Bearer s3cret, x-scope-orgid: s3cret}}
cache: {directory: '`+t.TempDir()+`'}
timeout: 1m`, cfg))
	p, err := NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), set, cfg, new(consumertest.ProfilesSink))
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeProfiles(t.Context(), native(t, "00112233445566778899")))
	assert.Equal(t, "Bearer s3cret", (<-seen).Get("Authorization"))
	assert.Equal(t, map[string]int64{"failed": 1}, profiletest.MetricsBy(t, telemetry, "otelcol_processor_symbolize_files", "result")[""])
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Empty(t, stolen())
	require.Equal(t, 1, logs.Len())
	assert.Contains(t, fmt.Sprint(logs.All()[0].ContextMap()), "which is no public address and is not asked")
}

// native is a payload with one native frame of a file with this build ID.
func native(t *testing.T, buildID string) pprofile.Profiles {
	t.Helper()
	return profiletest.Build(t, expand.Profile{Type: "cpu", Unit: "nanoseconds", Samples: []*expand.Sample{{
		Stack: []*expand.Frame{{Address: 64, Mapping: expand.Mapping{Limit: 1 << 20, Attributes: []expand.Attribute{{Key: "process.executable.build_id.gnu", Value: buildID}}}}},
		Sum:   big.NewInt(1),
	}}})
}
