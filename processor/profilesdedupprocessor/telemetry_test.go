// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor/internal/metadata"
)

// Metrics are by the ID of the processor. A processor in two pipelines is two with one ID, whose
// metrics are added, also the observed ones.
func TestMetricsTellProcessorsApart(t *testing.T) {
	tel := componenttest.NewTelemetry()
	var retained []int64
	for i, name := range []string{"", "", "files"} {
		set := nopSettings()
		set.ID, set.TelemetrySettings = component.NewIDWithName(metadata.Type, name), tel.NewTelemetrySettings()
		p := startProcessor(t, set, &downstream{}, nil)
		defer func() { require.NoError(t, p.Shutdown(context.Background())) }()
		for n := range i + 1 {
			require.NoError(t, p.ConsumeProfiles(t.Context(), identified(byte(n+1), 5)))
		}
		retained = append(retained, p.retained())
	}
	for range 2 { // each collection observes again
		got := profiletest.MetricsBy(t, tel, "otelcol_processor_profiles_dedup_", "processor")
		require.Equal(t, map[string]int64{"profiles_dedup": 3, "profiles_dedup/files": 3}, got["incoming_profiles"])
		require.Equal(t, map[string]int64{"profiles_dedup": retained[0] + retained[1], "profiles_dedup/files": retained[2]}, got["retained_bytes"])
	}
}

func TestSaturatedValuesAreCounted_P3(t *testing.T) {
	for _, window := range []time.Duration{0, time.Hour} {
		p, metric := newCounted(t, &downstream{}, func(c *Config) { c.Window = window })
		pd := payloadtest.InOne(t, payloadtest.Interval(1, 1, math.MaxInt64), payloadtest.Interval(1, 1, 1))
		require.NoError(t, p.ConsumeProfiles(t.Context(), pd))
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 1, metric("saturated_values", ""))
	}
}
