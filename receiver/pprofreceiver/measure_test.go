// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Size and duration of a translation are measured, in each protocol.
func TestTranslationIsMeasured(t *testing.T) {
	profile := plain(t, samplePprof("/bin/app", 1))
	for _, w := range protocols {
		b := startTestReceiver(t, serverYAML, consumertest.NewNop())
		require.Equal(t, w.success, b.sendBy(w, profiletest.Gzip(t, profile)).status)
		assert.Equal(t, map[string]int64{"http": int64(len(profile))}, b.counts("otelcol_receiver_pprof_payload_size", "transport"), w.name)
		duration, err := b.telemetry.GetMetric("otelcol_receiver_pprof_translation_duration")
		require.NoError(t, err)
		points := duration.Data.(metricdata.Histogram[float64]).DataPoints
		require.Len(t, points, 1)
		assert.EqualValues(t, 1, points[0].Count, w.name)
		accepted := b.counts("otelcol_receiver_accepted_profile_samples", "transport")
		assert.Equal(t, map[string]int64{"http": 2}, accepted, w.name)
	}
}
