// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// sum is that of a metric, for a reason or for all.
func sum(t testing.TB, telemetry *componenttest.Telemetry, name, reason string) (total int64) {
	t.Helper()
	key := "exporter"
	if reason != "" {
		key = "reason"
	}
	for value, n := range profiletest.MetricsBy(t, telemetry, "otelcol_exporter_profiles_file_"+name, key)[""] {
		if reason == "" || value == reason {
			total += n
		}
	}
	return total
}

func TestReasons(t *testing.T) {
	for want, err := range map[string]error{
		"no_space":       fmt.Errorf("write: %w", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}),
		"read_only":      syscall.EROFS,
		"permission":     syscall.EACCES,
		"descriptors":    syscall.EMFILE,
		"io":             &os.SyscallError{Syscall: "fsync", Err: syscall.EIO},
		"removed":        fmt.Errorf("x: %w", store.ErrGone),
		"invalid_record": fmt.Errorf("%w: x", segment.ErrInvalidRecord),
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
	record := profiletest.Proto(t, pd)
	for _, groupBy := range [][]string{nil, {"service.name"}} {
		cfg := createDefaultConfig().(*Config)
		cfg.Directory, cfg.Sync, cfg.GroupBy = t.TempDir(), syncNone, groupBy
		cfg.Rotation.MaxAge = time.Hour
		e, _ := startExporter(t, cfg)
		var fresh []pprofile.Profiles
		for range 40 {
			own := profiletest.Unmarshal(t, record)
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
		allocated := func(call func()) int {
			call()
			return int(profiletest.AllocatedBy(func() {
				for range 19 {
					call()
				}
			})) / 19
		}
		marshal := allocated(func() {
			encoder := segment.NewEncoder()
			defer encoder.Release()
			_, err := encoder.Encode(segment.Proto, profiletest.Proto(t, next()))
			require.NoError(t, err)
		})
		export := allocated(func() { require.NoError(t, e.ConsumeProfiles(t.Context(), next())) })
		assert.Less(t, export, 2*marshal, "a copy takes as much again as marshalling, or more")
		require.NoError(t, e.Shutdown(t.Context()))
	}
}
