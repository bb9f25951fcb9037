// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// sums gives what the counters say, each with its attribute.
func sums(t testing.TB, telemetry *componenttest.Telemetry) map[string]int64 {
	found := map[string]int64{}
	var all metricdata.ResourceMetrics
	require.NoError(t, telemetry.Reader.Collect(context.Background(), &all))
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			for _, point := range sum.DataPoints {
				name := m.Name
				for _, key := range []attribute.Key{"reason", "outcome"} {
					if v, has := point.Attributes.Value(key); has {
						name += " " + v.AsString()
					}
				}
				found[name] += point.Value
			}
		}
	}
	return found
}

func TestTelemetry(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	defer func() { require.NoError(t, telemetry.Shutdown(context.Background())) }()
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	cfg := createDefaultConfig().(*Config)
	cfg.Directory = filepath.Join(t.TempDir(), "profiles")
	cfg.Rotation.MaxRecords = 2
	cfg.Retention.MaxFiles = 1
	cfg.RetryOnFailure.Enabled = false
	require.NoError(t, os.Mkdir(cfg.Directory, 0o700))
	incomplete := recordfile.Name{Sequence: 9, Format: recordfile.Format{Content: recordfile.OTLPProto}, Partial: true}.String()
	require.NoError(t, os.WriteFile(filepath.Join(cfg.Directory, incomplete), []byte("torn"), 0o600))

	create := func(set exporter.Settings) xexporter.Profiles {
		e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, cfg)
		require.NoError(t, err)
		return e
	}
	e := create(set)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	raw := 0
	for i := range 5 {
		pd := numbered(i, "a")
		record, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(t, err)
		raw += len(record)
		require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
	}
	require.NoError(t, os.RemoveAll(cfg.Directory))
	require.NoError(t, os.WriteFile(cfg.Directory, nil, 0o600))
	require.Error(t, e.ConsumeProfiles(t.Context(), numbered(9, "a")))
	require.NoError(t, os.Remove(cfg.Directory))
	require.NoError(t, os.Mkdir(cfg.Directory, 0o700))
	for i := range 4 {
		require.NoError(t, e.ConsumeProfiles(t.Context(), numbered(i, "a")))
		raw += len(must((&pprofile.ProtoMarshaler{}).MarshalProfiles(numbered(i, "a"))))
	}
	require.NoError(t, e.Shutdown(t.Context()))

	got := sums(t, telemetry)
	const prefix = "otelcol_exporter_profiles_file_"
	assert.Equal(t, int64(9), got[prefix+"records"])
	assert.Equal(t, int64(raw), got[prefix+"uncompressed_bytes"])
	assert.Positive(t, got[prefix+"written_bytes"])
	assert.Equal(t, int64(4), got[prefix+"files records"])
	assert.Equal(t, int64(1), got[prefix+"recovered_files removed"])
	assert.Equal(t, int64(1), got[prefix+"removed_files"])
	assert.Positive(t, got[prefix+"errors removed"], "the directory")
	assert.Equal(t, int64(1), got[prefix+"errors other"], "the record: not a directory")
}

func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

func TestReasons(t *testing.T) {
	for want, err := range map[string]error{
		"no_space":       fmt.Errorf("write: %w", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}),
		"read_only":      syscall.EROFS,
		"permission":     syscall.EACCES,
		"descriptors":    syscall.EMFILE,
		"io":             &os.SyscallError{Syscall: "fsync", Err: syscall.EIO},
		"removed":        fmt.Errorf("x: %w", recordfile.ErrGone),
		"invalid_record": fmt.Errorf("%w: x", recordfile.ErrInvalidRecord),
		"other":          errors.New("x"),
	} {
		assert.Equal(t, want, reasonOf(err))
	}
}

// TestCopiesNothing: what the exporter owns is marshalled where it is: writing takes
// little more memory than marshalling, and looking for groups. Only attributes that may be string references are
// copied, for the index.
func TestCopiesNothing(t *testing.T) {
	pd := pprofile.NewProfiles()
	random := profiletest.NewRand(1)
	for (&pprofile.ProtoMarshaler{}).ProfilesSize(pd) < 128<<10 {
		require.NoError(t, profiletest.GenerateProfiles(random).MergeTo(pd))
	}
	mayBeReference := func(key string, v pcommon.Value) bool {
		return key == "" || v.AsString() == "" || v.Type() == pcommon.ValueTypeMap || v.Type() == pcommon.ValueTypeSlice
	}
	record := must((&pprofile.ProtoMarshaler{}).MarshalProfiles(pd))
	for _, groupBy := range [][]string{nil, {"service.name"}} {
		cfg := createDefaultConfig().(*Config)
		cfg.Directory, cfg.Compression, cfg.Sync, cfg.GroupBy = t.TempDir(), compressionNone, syncNone, groupBy
		cfg.Rotation.MaxAge = time.Hour
		e, _ := startExporter(t, cfg)
		var fresh []pprofile.Profiles
		for range 40 {
			own := must((&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(record))
			own.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return groupBy != nil && own.ResourceProfiles().Len() > 1 })
			for _, rp := range own.ResourceProfiles().All() {
				rp.Resource().Attributes().RemoveIf(mayBeReference)
				for _, sp := range rp.ScopeProfiles().All() {
					sp.Scope().Attributes().RemoveIf(mayBeReference)
				}
			}
			fresh = append(fresh, own)
		}
		n := 0
		next := func() pprofile.Profiles { n++; return fresh[n-1] }
		marshal := allocated(19, func() { _ = must((&pprofile.ProtoMarshaler{}).MarshalProfiles(next())) })
		export := allocated(19, func() { require.NoError(t, e.ConsumeProfiles(t.Context(), next())) })
		t.Logf("record of %d bytes: marshalling takes %d, exporting %d", len(record), marshal, export)
		assert.Less(t, export, marshal+marshal/2)
		require.NoError(t, e.Shutdown(t.Context()))
	}
}

// allocated gives the bytes that a call takes on average.
func allocated(times int, call func()) int {
	call()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		call()
	}
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / times
}
