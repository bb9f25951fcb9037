// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

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
		assert.Less(t, export, marshal+marshal*3/4, "a copy takes as much again as marshalling, or more")
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
