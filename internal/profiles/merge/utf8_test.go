// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// No text leaves that is not UTF-8, wherever it stood. What is repaired merges with what
// came in so.
func TestInvalidUTF8IsRepaired(t *testing.T) {
	payload := func(bad string) pprofile.Profiles {
		pd := payloadtest.With(payloadtest.Interval(1, 1, 5), "key"+bad, "value"+bad)
		rp := pd.ResourceProfiles().At(0)
		rp.SetSchemaUrl("resource" + bad)
		sp := rp.ScopeProfiles().At(0)
		sp.SetSchemaUrl("scope" + bad)
		sp.Scope().SetName("name" + bad)
		sp.Scope().SetVersion("version" + bad)
		sp.Scope().Attributes().PutStr("key"+bad, "value"+bad)
		pd.Dictionary().StringTable().SetAt(1, "cpu"+bad)
		return pd
	}
	for _, snapshots := range []Snapshots{SnapshotsKeep, SnapshotsLatest, SnapshotsSum} {
		options := defaultOptions()
		options.Snapshots = snapshots
		out := merged(t, options, payload("\xff\xfe"), payload(`\xff\xfe`))
		profiletest.RequireConformsBytes(t, profiletest.ProtoOfCopy(t, out))
		require.EqualValues(t, 10, payloadtest.Only(t, out).Samples().At(0).Values().At(0))
		require.Equal(t, `name\xff\xfe`, out.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Name())
	}
}
