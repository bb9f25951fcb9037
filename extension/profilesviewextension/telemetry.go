// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesviewextension

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/felixge/httpsnoop"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/page"
)

// paths are the values of the attribute path, by the pattern that a request matches. Others are otherPath.
var paths = map[string]string{
	"/{$}": "/", "/api/services": "/api/services", "/api/profile": "/api/profile",
	"/querier.v1.QuerierService/ProfileTypes": "ProfileTypes", "/querier.v1.QuerierService/LabelNames": "LabelNames",
	"/querier.v1.QuerierService/LabelValues": "LabelValues", "/querier.v1.QuerierService/Series": "Series",
	"/querier.v1.QuerierService/SelectMergeStacktraces": "SelectMergeStacktraces", "/querier.v1.QuerierService/SelectMergeSpanProfile": "SelectMergeSpanProfile",
	"/querier.v1.QuerierService/SelectMergeProfile": "SelectMergeProfile", "/querier.v1.QuerierService/SelectSeries": "SelectSeries",
	"/querier.v1.QuerierService/Diff": "Diff", "/querier.v1.QuerierService/GetProfileStats": "GetProfileStats",
	"/timeline": "/timeline", "/api/timeline/heatmap": "/api/timeline", "/api/timeline/lanes": "/api/timeline",
	"/select": "/select", "/static/{hash}/{name}": "/static", "/trace": "/trace", "/trace/{id}": "/trace",
}

const otherPath = "other"

// telemetry is the metrics of one extension.
type telemetry struct {
	builder   *metadata.TelemetryBuilder
	extension attribute.KeyValue
}

func newTelemetry(set *extension.Settings, pages *page.Page) (*telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	t := &telemetry{builder, attribute.String("extension", set.ID.String())}
	t.count(http.StatusTooManyRequests, 0, otherPath) // so that the first ones are an increase
	for _, path := range paths {
		t.count(http.StatusOK, 0, path)
	}
	return t, builder.RegisterExtensionProfilesViewMemoryCallback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(pages.Memory(), metric.WithAttributes(t.extension))
		return nil
	})
}

// count adds n responses with a status.
func (t *telemetry) count(status int, n int64, path string) {
	class := attribute.String("status", fmt.Sprintf("%dxx", status/100))
	t.builder.ExtensionProfilesViewRequests.Add(context.Background(), n, metric.WithAttributes(t.extension, attribute.String("path", path), class))
	if status == http.StatusTooManyRequests {
		t.builder.ExtensionProfilesViewRejectedRequests.Add(context.Background(), n, metric.WithAttributes(t.extension))
	}
}

// measure counts the requests that next serves, and their time.
func (t *telemetry) measure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served := httpsnoop.CaptureMetrics(next, w, r)
		path := cmp.Or(paths[r.Pattern], otherPath)
		t.count(served.Code, 1, path)
		t.builder.ExtensionProfilesViewRequestDuration.Record(context.Background(), served.Duration.Seconds(), metric.WithAttributes(t.extension, attribute.String("path", path)))
	})
}
