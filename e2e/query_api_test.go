// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestQueryAPIWithPyroscopesClient calls each method by Pyroscope's own client. The tests of the extension check
// the answers against a slow computation.
func TestQueryAPIWithPyroscopesClient(t *testing.T) {
	parallel(t)
	listen, view, files := freeAddress(t), freeAddress(t), filepath.Join(t.TempDir(), "profiles")
	c := run(t, listen, files, fmt.Sprintf(`
receivers: {pprof: {server: {endpoint: %s}}}
processors: {profiles_dedup: {window: 1s}}
exporters: {profiles_file: {directory: %[2]s}}
extensions: {profiles_view: {directory: %[2]s, endpoint: %s}}
service:
  telemetry: {metrics: {level: none}}
  extensions: [profiles_view]
  pipelines: {profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}}
`, listen, files, view))
	c.push(t, "checkout", numbered(t, 3))
	c.push(t, "cart", numbered(t, 4))
	for name, options := range map[string][]connect.ClientOption{
		"protobuf": nil, "JSON, compressed requests": {connect.WithProtoJSON(), connect.WithSendGzip()},
	} {
		t.Run(name, func(t *testing.T) {
			checkQueryAPI(t, c, querierv1connect.NewQuerierServiceClient(http.DefaultClient, "http://"+view, options...))
		})
	}
}

func checkQueryAPI(t *testing.T, c *collector, q querierv1connect.QuerierServiceClient) {
	ctx, from, to := t.Context(), time.Now().Add(-10*time.Minute).UnixMilli(), time.Now().Add(time.Minute).UnixMilli()
	var cpuType string
	c.await(t, "services in files", func() bool {
		types, err := q.ProfileTypes(ctx, connect.NewRequest(&querierv1.ProfileTypesRequest{Start: from, End: to}))
		require.NoError(t, err)
		services, err := q.LabelValues(ctx, connect.NewRequest(&typesv1.LabelValuesRequest{Name: "service_name", Start: from, End: to}))
		require.NoError(t, err)
		if len(types.Msg.ProfileTypes) == 0 || len(services.Msg.Names) < 2 {
			return false
		}
		cpuType = types.Msg.ProfileTypes[0].ID
		return true
	})
	request := func(service string) *querierv1.SelectMergeStacktracesRequest {
		return &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, LabelSelector: fmt.Sprintf("{service_name=%q}", service), Start: from, End: to}
	}
	graph, err := q.SelectMergeStacktraces(ctx, connect.NewRequest(request("cart")))
	require.NoError(t, err)
	assert.Equal(t, int64(4), graph.Msg.Flamegraph.Total)
	assert.ElementsMatch(t, []string{"total", "work"}, graph.Msg.Flamegraph.Names)
	diff, err := q.Diff(ctx, connect.NewRequest(&querierv1.DiffRequest{Left: request("checkout"), Right: request("cart")}))
	require.NoError(t, err)
	assert.Equal(t, []int64{3, 4}, []int64{diff.Msg.Flamegraph.LeftTicks, diff.Msg.Flamegraph.RightTicks})
	merged, err := q.SelectMergeProfile(ctx, connect.NewRequest(&querierv1.SelectMergeProfileRequest{ //nolint:staticcheck // older clients call it
		ProfileTypeID: cpuType, LabelSelector: "{}", Start: from, End: to,
	}))
	require.NoError(t, err)
	assert.Equal(t, int64(7), merged.Msg.Sample[0].Value[0])
	span, err := q.SelectMergeSpanProfile(ctx, connect.NewRequest(&querierv1.SelectMergeSpanProfileRequest{ //nolint:staticcheck // older clients call it
		ProfileTypeID: cpuType, LabelSelector: "{}", SpanSelector: []string{"00f067aa0ba902b7"}, Start: from, End: to,
	}))
	require.NoError(t, err)
	assert.Zero(t, span.Msg.Flamegraph.Total, "no sample has a span")
	series, err := q.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{
		ProfileTypeID: cpuType, LabelSelector: "{}", Start: from, End: to, Step: 60, GroupBy: []string{"service_name"},
	}))
	require.NoError(t, err)
	assert.Len(t, series.Msg.Series, 2)
	names, err := q.LabelNames(ctx, connect.NewRequest(&typesv1.LabelNamesRequest{Start: from, End: to}))
	require.NoError(t, err)
	assert.Contains(t, names.Msg.Names, "service_name")
	labels, err := q.Series(ctx, connect.NewRequest(&querierv1.SeriesRequest{LabelNames: []string{"service_name"}, Start: from, End: to}))
	require.NoError(t, err)
	assert.Len(t, labels.Msg.LabelsSet, 2)
	stats, err := q.GetProfileStats(ctx, connect.NewRequest(&typesv1.GetProfileStatsRequest{}))
	require.NoError(t, err)
	assert.True(t, stats.Msg.DataIngested)
	_, err = q.SelectHeatmap(ctx, connect.NewRequest(&querierv1.SelectHeatmapRequest{}))
	assert.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err), "a method that is not served")
}
