// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A reading that does not tell its time is told apart from an equal one of another
// moment; one that does is the same whatever the way in says.
func TestGivenTimeIsPartOfTheID(t *testing.T) {
	accepted := func(payloadTime int64, given pcommon.Timestamp) pprofile.Profile {
		var payload bytes.Buffer
		require.NoError(t, (&profile.Profile{
			SampleType: []*profile.ValueType{{Type: "goroutine", Unit: "count"}},
			Sample:     []*profile.Sample{{Value: []int64{1}}},
			TimeNanos:  payloadTime,
		}).WriteUncompressed(&payload))
		sink := &consumertest.ProfilesSink{}
		b := newBench(t, serverYAML, sink)
		require.NoError(t, b.server.intake.accept(context.Background(), arrival{
			payload: payload.Bytes(), resource: pcommon.NewMap(), span: timeSpan{from: given},
		}, nil))
		require.Len(t, sink.AllProfiles(), 1)
		return sink.AllProfiles()[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	}
	const first, second = pcommon.Timestamp(1.7e18), pcommon.Timestamp(1.8e18)

	once, again := accepted(0, first), accepted(0, first)
	assert.Equal(t, first, once.Time())
	assert.Equal(t, once.ProfileID(), again.ProfileID())
	assert.NotEqual(t, accepted(0, first).ProfileID(), accepted(0, second).ProfileID())
	assert.NotEqual(t, accepted(0, first).ProfileID(), accepted(0, 0).ProfileID())

	assert.Equal(t, pcommon.Timestamp(1.6e18), accepted(1.6e18, first).Time())
	assert.Equal(t, accepted(1.6e18, first).ProfileID(), accepted(1.6e18, second).ProfileID())
}
