// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
)

// Proto marshals a payload to protobuf.
func Proto(tb testing.TB, pd pprofile.Profiles) []byte {
	tb.Helper()
	data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
	require.NoError(tb, err)
	return data
}

// ProtoOfCopy is Proto for a payload that must not change: pdata replaces the strings of resources by references.
func ProtoOfCopy(tb testing.TB, pd pprofile.Profiles) []byte {
	tb.Helper()
	data, err := conformance.Marshal(pd)
	require.NoError(tb, err)
	return data
}

// JSON marshals a payload to OTLP/JSON.
func JSON(tb testing.TB, pd pprofile.Profiles) []byte {
	tb.Helper()
	data, err := (&pprofile.JSONMarshaler{}).MarshalProfiles(pd)
	require.NoError(tb, err)
	return data
}

// Unmarshal reads a payload in protobuf.
func Unmarshal(tb testing.TB, data []byte) pprofile.Profiles {
	tb.Helper()
	pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
	require.NoError(tb, err)
	return pd
}

// UnmarshalJSON reads a payload in OTLP/JSON.
func UnmarshalJSON(tb testing.TB, data []byte) pprofile.Profiles {
	tb.Helper()
	pd, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(data)
	require.NoError(tb, err)
	return pd
}
