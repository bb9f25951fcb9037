// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// timestamped is a payload of n Profiles that do not merge, each with one timestamp of a
// stack of its own.
func timestamped(t *testing.T, n int) pprofile.Profiles {
	t.Helper()
	profiles := make([]expand.Profile, n)
	for i := range profiles {
		sample := &expand.Sample{Stack: []*expand.Frame{{Address: uint64(i + 1)}}, Sum: big.NewInt(1), Points: []expand.Point{{Timestamp: 1, Value: 1}}}
		profiles[i] = expand.Profile{Type: "cpu", Period: int64(i + 1), Time: 1, Duration: 1, Shape: expand.ShapeBoth, Samples: []*expand.Sample{sample}}
	}
	return profiletest.Build(t, profiles...)
}

// What many Profiles with timestamps cost grows with their number and not with its square.
func TestManyTimestampedProfiles(t *testing.T) {
	cost := func(n int) uint64 {
		w := NewWindow(defaultOptions())
		require.NoError(t, add(w, timestamped(t, n)))
		var pd pprofile.Profiles
		allocated := profiletest.AllocatedBy(func() { pd = w.Emit("") })
		require.Equal(t, n, pd.SampleCount())
		require.Equal(t, n, pd.ProfileCount())
		return allocated
	}
	require.Less(t, cost(8000), 12*cost(1000))
}
