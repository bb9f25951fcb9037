// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/xprocessor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/metadatatest"
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
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	core, logs := observer.New(zapcore.WarnLevel)
	set := metadatatest.NewSettings(telemetry)
	set.Logger = zap.New(core)
	cfg := createDefaultConfig().(*Config)
	cfg.Directories, cfg.Cache.Directory, cfg.Timeout = []string{t.TempDir()}, t.TempDir(), time.Minute
	const damaged = "00112233445566778899"
	require.NoError(t, os.MkdirAll(filepath.Join(cfg.Directories[0], ".build-id", damaged[:2]), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Directories[0], ".build-id", damaged[:2], damaged[2:]+".debug"), []byte("\x7fELF"), 0o600))
	sink := new(consumertest.ProfilesSink)
	p, err := NewFactory().(xprocessor.Factory).CreateProfiles(t.Context(), set, cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.True(t, p.Capabilities().MutatesData)

	plain := profiletest.OneOfEach()
	marshalled := profiletest.Proto(t, plain)
	require.NoError(t, p.ConsumeProfiles(t.Context(), plain))
	require.Equal(t, marshalled, profiletest.Proto(t, sink.AllProfiles()[0]))

	for range 2 {
		native := profiletest.OneOfEach()
		d := native.Dictionary()
		d.StringTable().Append("process.executable.build_id.gnu")
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(int32(d.StringTable().Len()) - 1)
		a.Value().SetStr(damaged)
		m := d.MappingTable().AppendEmpty()
		m.SetMemoryLimit(1 << 20)
		m.AttributeIndices().Append(int32(d.AttributeTable().Len()) - 1)
		l := d.LocationTable().AppendEmpty()
		l.SetMappingIndex(int32(d.MappingTable().Len()) - 1)
		l.SetAddress(64)
		d.StackTable().AppendEmpty().LocationIndices().Append(int32(d.LocationTable().Len()) - 1)
		require.NoError(t, p.ConsumeProfiles(t.Context(), native))
	}
	p.(*symbolizeProcessor).built("aa", &symbolize.IncompleteError{})
	p.(*symbolizeProcessor).built("bb", symbolize.ErrNotFound)
	require.NoError(t, p.Shutdown(t.Context()))
	id := attribute.String("processor", set.ID.String())
	metadatatest.AssertEqualProcessorSymbolizeLocations(t, telemetry, []metricdata.DataPoint[int64]{
		{Value: 2, Attributes: attribute.NewSet(id, attribute.String("outcome", "failed"))},
	}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorSymbolizeFiles(t, telemetry, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(id, attribute.String("result", "failed"))},
		{Value: 1, Attributes: attribute.NewSet(id, attribute.String("result", "incomplete"))},
		{Value: 1, Attributes: attribute.NewSet(id, attribute.String("result", "not_found"))},
	}, metricdatatest.IgnoreTimestamp())
	require.Equal(t, 2, logs.Len(), "a file is named once, and one that is not found is not")
	assert.Equal(t, damaged, logs.All()[0].ContextMap()["build_id"])
}
