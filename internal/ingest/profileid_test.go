// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func newTestIngester(t *testing.T, next xconsumer.Profiles) *Ingester {
	t.Helper()
	in, err := New(Settings{
		Receiver:    receivertest.NewNopSettings(component.MustNewType("pprof")),
		Unmarshaler: &pproftranslator.Unmarshaler{},
		Metrics: Metrics{
			PayloadSize:         noop.Int64Counter{},
			TranslationDuration: noop.Float64Histogram{},
			EmptyProfiles:       noop.Int64Counter{},
			Repairs:             noop.Int64Counter{},
			Attributes:          metric.WithAttributes(),
		},
	}, next)
	require.NoError(t, err)
	return in
}

// Equal snapshots without a time differ if the sender states different times. A
// payload with a time of its own keeps its ID whatever the sender states.
func TestProfileIDDependsOnGivenTime(t *testing.T) {
	accepted := func(payloadTime int64, given pcommon.Timestamp) pprofile.Profile {
		var payload bytes.Buffer
		require.NoError(t, (&profile.Profile{
			SampleType: []*profile.ValueType{{Type: "goroutine", Unit: "count"}},
			Sample:     []*profile.Sample{{Value: []int64{1}}},
			TimeNanos:  payloadTime,
		}).WriteUncompressed(&payload))
		sink := &consumertest.ProfilesSink{}
		require.NoError(t, newTestIngester(t, sink).Ingest(t.Context(), Payload{
			Data: payload.Bytes(), Resource: pcommon.NewMap(), TimeRange: TimeRange{Start: given},
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
