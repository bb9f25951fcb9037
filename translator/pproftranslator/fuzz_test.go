// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

func addPprofSeeds(f *testing.F) {
	f.Helper()
	f.Add([]byte(base()))
	f.Add(profiletest.Gzip(f, base()))
	for seed := range uint64(20) {
		r := profiletest.NewRand(seed)
		p := profiletest.GeneratePprof(r)
		p.Sample = p.Sample[:min(6, len(p.Sample))]
		p = p.Compact()
		f.Add(profiletest.Pprof(f, p))
		if seed%4 == 0 {
			profiletest.BreakUTF8(r, p)
			f.Add(profiletest.Pprof(f, p))
		}
	}
}

// Whatever comes is rejected or translated as google/pprof does. What is translated comes back equal.
func FuzzUnmarshal(f *testing.F) {
	addPprofSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		pd, report, err := (&Unmarshaler{}).UnmarshalReport(data)
		if isLimit(err) {
			return
		}
		plain, broken := Decompress(data, Limits{}.withDefaults().DecompressedSize)
		if broken != nil {
			require.Error(t, err)
			return
		}
		if err != nil || !hasZeroBesideRole(pd.Dictionary()) {
			requireAsOracle(t, plain)
		}
		switch {
		case err != nil || report.SaturatedValues > 0:
		case report.InvalidStrings > 0: // strings that become equal when they are repaired make samples equal
			want, err := profile.ParseData(data)
			require.NoError(t, err)
			converted, err := pprofsOf(Marshaler{}, pd)
			require.NoError(t, err)
			require.Equal(t, totalsOf(expandPprofs(t, want)), totalsOf(expandPprofs(t, converted...)))
		default:
			want, got := thereAndBack(t, data, unchanged)
			requireEqualPprofs(t, want, got, expand.Options{})
		}
	})
}

// hasZeroBesideRole returns whether a label that may be a timestamp or an id has several values, one of them 0
// without a unit. google/pprof drops that one, and the label has a single value.
func hasZeroBesideRole(dict pprofile.ProfilesDictionary) bool {
	roles := []string{expand.LabelTimestamp, expand.LabelTraceID, expand.LabelSpanID}
	for _, a := range dict.AttributeTable().All() {
		if a.Value().Type() != pcommon.ValueTypeSlice || !slices.Contains(roles, dict.StringTable().At(int(a.KeyStrindex()))) {
			continue
		}
		for _, v := range a.Value().Slice().All() {
			if text := v.AsString(); text == "0" || text == `{"value":0}` {
				return true
			}
		}
	}
	return false
}

func isLimit(err error) bool {
	var limit *LimitError
	return errors.As(err, &limit)
}
