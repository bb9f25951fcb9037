// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
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

// call returns the answer of a method.
func call[Q, A any](t *testing.T, method func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), request *Q) *A {
	t.Helper()
	response, err := method(t.Context(), connect.NewRequest(request))
	require.NoError(t, err)
	return response.Msg
}

func checkQueryAPI(t *testing.T, c *collector, q querierv1connect.QuerierServiceClient) {
	from, to := time.Now().Add(-10*time.Minute).UnixMilli(), time.Now().Add(time.Minute).UnixMilli()
	var cpuType string
	c.await(t, "services in files", func() bool {
		types := call(t, q.ProfileTypes, &querierv1.ProfileTypesRequest{Start: from, End: to}).ProfileTypes
		services := call(t, q.LabelValues, &typesv1.LabelValuesRequest{Name: "service_name", Start: from, End: to}).Names
		if len(types) == 0 || len(services) < 2 {
			return false
		}
		cpuType = types[0].ID
		return true
	})
	request := func(service string) *querierv1.SelectMergeStacktracesRequest {
		return &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, LabelSelector: fmt.Sprintf("{service_name=%q}", service), Start: from, End: to}
	}
	graph := call(t, q.SelectMergeStacktraces, request("cart")).Flamegraph
	assert.Equal(t, int64(4), graph.Total)
	assert.ElementsMatch(t, []string{"total", "work"}, graph.Names)
	checkFormats(t, q, request("cart"))
	diff := call(t, q.Diff, &querierv1.DiffRequest{Left: request("checkout"), Right: request("cart")}).Flamegraph
	assert.Equal(t, []int64{3, 4}, []int64{diff.LeftTicks, diff.RightTicks})
	merged := call(t, q.SelectMergeProfile, &querierv1.SelectMergeProfileRequest{ //nolint:staticcheck // older clients call it
		ProfileTypeID: cpuType, LabelSelector: "{}", Start: from, End: to,
	})
	assert.Equal(t, int64(7), merged.Sample[0].Value[0])
	span := call(t, q.SelectMergeSpanProfile, &querierv1.SelectMergeSpanProfileRequest{ //nolint:staticcheck // older clients call it
		ProfileTypeID: cpuType, LabelSelector: "{}", SpanSelector: []string{"00f067aa0ba902b7"}, Start: from, End: to,
	})
	assert.Zero(t, span.Flamegraph.Total, "no sample has a span")
	series := call(t, q.SelectSeries, &querierv1.SelectSeriesRequest{
		ProfileTypeID: cpuType, LabelSelector: "{}", Start: from, End: to, Step: 60, GroupBy: []string{"service_name"}, ExemplarType: typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL,
	})
	require.Len(t, series.Series, 2)
	named := series.Series[0].Points[0].Exemplars
	require.Len(t, named, 1)
	profile := request("cart")
	profile.ProfileIdSelector = []string{named[0].ProfileId}
	assert.Equal(t, int64(4), call(t, q.SelectMergeStacktraces, profile).Flamegraph.Total, "the profile of the exemplar")
	assert.Contains(t, call(t, q.LabelNames, &typesv1.LabelNamesRequest{Start: from, End: to}).Names, "service_name")
	assert.Len(t, call(t, q.Series, &querierv1.SeriesRequest{LabelNames: []string{"service_name"}, Start: from, End: to}).LabelsSet, 2)
	assert.True(t, call(t, q.GetProfileStats, &typesv1.GetProfileStatsRequest{}).DataIngested)
	heatmap := call(t, q.SelectHeatmap, &querierv1.SelectHeatmapRequest{ProfileTypeID: cpuType, LabelSelector: "{}", Start: from, End: to, Step: 60,
		GroupBy: []string{"service_name"}, QueryType: querierv1.HeatmapQueryType_HEATMAP_QUERY_TYPE_INDIVIDUAL, ExemplarType: typesv1.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL})
	require.Len(t, heatmap.Series, 2)
	for i, value := range []int64{4, 3} { // cart, checkout
		assert.Equal(t, value, heatmap.Series[i].Slots[0].Exemplars[0].Value)
	}
	_, err := q.AnalyzeQuery(t.Context(), connect.NewRequest(&querierv1.AnalyzeQueryRequest{}))
	assert.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err), "a method that is not served")
}

// checkFormats asks for each format, as profilecli does for pprof and Grafana for the others: the request selects one stack of the
// value 4. Of no samples, profilecli expects an empty pprof: without one, it asks the older method.
func checkFormats(t *testing.T, q querierv1connect.QuerierServiceClient, request *querierv1.SelectMergeStacktracesRequest) {
	t.Helper()
	answer := func(format querierv1.ProfileFormat) *querierv1.SelectMergeStacktracesResponse {
		request.Format = format
		return call(t, q.SelectMergeStacktraces, request)
	}
	assert.Equal(t, int64(4), answer(querierv1.ProfileFormat_PROFILE_FORMAT_FLAMEGRAPH).Flamegraph.Total)
	assert.Equal(t, "\x00\x00\x01"+"\x04work\x04\x00", string(answer(querierv1.ProfileFormat_PROFILE_FORMAT_TREE).Tree))
	assert.Contains(t, answer(querierv1.ProfileFormat_PROFILE_FORMAT_DOT).Dot, `[label="work\n4 of 4"]`)
	assert.Equal(t, int64(4), answer(querierv1.ProfileFormat_PROFILE_FORMAT_PPROF).Pprof.Profile.Sample[0].Value[0])
	request.Async = &querierv1.AsyncQueryRequest{Type: querierv1.AsyncQueryType_ASYNC_QUERY_TYPE_FORCE}
	assert.Equal(t, querierv1.AsyncQueryStatus_ASYNC_QUERY_STATUS_SUCCESS, answer(querierv1.ProfileFormat_PROFILE_FORMAT_PPROF).Async.Status)
	request.Async = nil
	for _, selects := range []func(){
		func() { request.SpanSelector = []string{"00f067aa0ba902b7"} },
		func() { request.TraceIdSelector = []string{"4bf92f3577b34da6a3ce929d0e0e4736"} },
		func() { request.ProfileIdSelector = []string{"7c9e6679-7425-40de-944b-e07fc1f90ae7"} },
	} {
		request.SpanSelector, request.TraceIdSelector, request.ProfileIdSelector = nil, nil, nil
		selects()
		empty := answer(querierv1.ProfileFormat_PROFILE_FORMAT_PPROF).Pprof.GetProfile()
		require.NotNil(t, empty)
		assert.Empty(t, empty.Sample)
	}
}
