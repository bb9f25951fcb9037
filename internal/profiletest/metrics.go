// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// MetricsBy reads the metrics whose names begin with prefix. For each it returns, by
// the value of an attribute, which every point must have, the sum of the points; of a
// histogram, how often was recorded.
func MetricsBy(tb testing.TB, telemetry *componenttest.Telemetry, prefix, key string) map[string]map[string]int64 {
	tb.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(tb, telemetry.Reader.Collect(context.Background(), &all))
	found := map[string]map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			name, ok := strings.CutPrefix(m.Name, prefix)
			if !ok {
				continue
			}
			found[name] = map[string]int64{}
			add := func(attributes attribute.Set, n int64) {
				value, has := attributes.Value(attribute.Key(key))
				require.True(tb, has, "a point of %s has no %s", m.Name, key)
				found[name][value.String()] += n
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					add(point.Attributes, point.Value)
				}
			case metricdata.Gauge[int64]:
				for _, point := range data.DataPoints {
					add(point.Attributes, point.Value)
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					add(point.Attributes, int64(point.Count))
				}
			default:
				tb.Fatalf("%s is %T", m.Name, data)
			}
		}
	}
	return found
}
