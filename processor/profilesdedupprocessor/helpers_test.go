// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func marshal(t testing.TB, pd pprofile.Profiles) []byte {
	t.Helper()
	mutable := pprofile.NewProfiles()
	pd.CopyTo(mutable)
	b, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(mutable)
	require.NoError(t, err)
	return b
}

func unmarshalPprof(t testing.TB, data []byte) pprofile.Profiles {
	t.Helper()
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	return pd
}

func eachProfile(pd pprofile.Profiles, f func(pprofile.Profile)) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				f(p)
			}
		}
	}
}
