// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// TestOneDuplicateKeyTakesNoOther: a set of attributes with a key twice is of the one
// pprof that reaches it, wherever it is, and of each pprof that does.
func TestOneDuplicateKeyTakesNoOther(t *testing.T) {
	const bad = 1
	duplicate := []int32{1, 2}
	for name, spoil := range map[string]func(pprofile.Profiles, pprofile.Profile){
		"sample": func(_ pprofile.Profiles, p pprofile.Profile) {
			p.Samples().At(0).AttributeIndices().FromRaw(duplicate)
		},
		"profile": func(_ pprofile.Profiles, p pprofile.Profile) { p.AttributeIndices().FromRaw(duplicate) },
		"location": func(pd pprofile.Profiles, p pprofile.Profile) {
			p.Samples().At(0).SetStackIndex(bad)
			pd.Dictionary().LocationTable().At(bad).AttributeIndices().FromRaw(duplicate)
		},
		"mapping": func(pd pprofile.Profiles, p pprofile.Profile) {
			p.Samples().At(0).SetStackIndex(bad)
			pd.Dictionary().MappingTable().At(bad).AttributeIndices().FromRaw(duplicate)
		},
	} {
		for _, spoilt := range [][]int{{1}, {1, 3}} {
			t.Run(name, func(t *testing.T) {
				e, _, _ := observed(t, pprofConfig(t))
				require.NoError(t, e.start(t.Context(), nil))
				pd := pprofile.NewProfiles()
				for i, service := range []string{"a", "b", "c", "d", "e"} {
					addScope(pd, service, int64(i+1))
				}
				dict := pd.Dictionary()
				dict.StringTable().Append("k")
				dict.AttributeTable().AppendEmpty()
				for _, v := range []string{"x", "y"} {
					a := dict.AttributeTable().AppendEmpty()
					a.SetKeyStrindex(3)
					a.Value().SetStr(v)
				}
				for i := range int32(2) { // the zero values, and those that may be bad
					dict.MappingTable().AppendEmpty().SetMemoryStart(uint64(i))
					l := dict.LocationTable().AppendEmpty()
					l.SetMappingIndex(i)
					l.SetAddress(uint64(i))
					s := dict.StackTable().AppendEmpty()
					if i > 0 {
						s.LocationIndices().Append(i)
					}
				}
				want := []int64{1, 2, 3, 4, 5}
				for _, i := range spoilt {
					spoil(pd, pd.ResourceProfiles().At(i).ScopeProfiles().At(0).Profiles().At(0))
					want[i] = 0
				}
				require.ErrorContains(t, e.consume(t.Context(), pd), `two attributes with the key "k"`)
				require.NoError(t, e.shutdown(t.Context()))
				var written []int64
				for _, v := range want {
					if v != 0 {
						written = append(written, v)
					}
				}
				require.Equal(t, written, pprofValues(t, e.config.Directory))
			})
		}
	}
}
