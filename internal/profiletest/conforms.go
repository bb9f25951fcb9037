// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
)

// RequireConforms fails tb with the violations, if there are any.
func RequireConforms(tb testing.TB, pd pprofile.Profiles) {
	tb.Helper()
	require.Empty(tb, conformance.Check(pd).Violations(), "a payload of %d profiles does not conform to the format", pd.ProfileCount())
}

// RequireConformsBytes is [RequireConforms] for a marshalled message.
func RequireConformsBytes(tb testing.TB, message []byte) {
	tb.Helper()
	require.Empty(tb, conformance.CheckBytes(message).Violations(), "the message does not conform to the format")
}
