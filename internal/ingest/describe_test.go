// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

func TestMissingPeriodTypesAreFilledIn(t *testing.T) {
	for _, test := range []struct {
		profileType, name, unit string
		period                  int64
		wantName, wantUnit      string
		wantPeriod              int64
	}{
		{"goroutine", "", "", 0, "goroutine", "count", 1},
		{"goroutineleak", "", "", 0, "goroutineleak", "count", 1},
		{"mutex", "", "", 10, "contentions", "count", 10},
		{"block", "contentions", "count", 0, "contentions", "count", 1},
		{"heap", "space", "bytes", 524288, "space", "bytes", 524288},
		{"heap", "", "", 0, "space", "bytes", 1},
		{"allocs", "cpu", "nanoseconds", 0, "cpu", "nanoseconds", 0},
		{"goroutine", "", "things", 0, "", "things", 0},
		{"cpu", "", "", 0, "", "", 0},
		{"cpu", "cpu", "nanoseconds", 0, "cpu", "nanoseconds", 0},
		{"", "", "", 0, "", "", 0},
	} {
		pd := pprofile.NewProfiles()
		names := pd.Dictionary().StringTable()
		names.Append("", test.name, test.unit)
		profiles := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles()
		p := profiles.AppendEmpty()
		p.PeriodType().SetTypeStrindex(1)
		p.PeriodType().SetUnitStrindex(2)
		p.SetPeriod(test.period)
		require.NoError(t, setPeriodType(pd.Dictionary(), profiles, test.profileType))
		require.Equal(t, test.wantName, names.At(int(p.PeriodType().TypeStrindex())))
		require.Equal(t, test.wantUnit, names.At(int(p.PeriodType().UnitStrindex())))
		require.Equal(t, test.wantPeriod, p.Period())
	}
}
