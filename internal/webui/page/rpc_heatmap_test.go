// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	pb "github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

// counted returns the number of values by series, slot and the least value of their bucket.
func counted(t *testing.T, response *pb.SelectHeatmapResponse) map[string]map[int64]map[float64]int32 {
	t.Helper()
	all := map[string]map[int64]map[float64]int32{}
	for _, series := range response.Series {
		name := ""
		for _, label := range series.Labels {
			name += label.Name + "=" + label.Value
		}
		all[name] = map[int64]map[float64]int32{}
		for _, slot := range series.Slots {
			require.Len(t, slot.Counts, 20)
			require.Len(t, slot.YMin, 20)
			all[name][slot.Timestamp] = map[float64]int32{}
			for i, count := range slot.Counts {
				if count > 0 {
					all[name][slot.Timestamp][slot.YMin[i]] = count
				}
			}
		}
	}
	return all
}

// A heatmap counts profiles, or spans, by the step that ends at or after their time and by value.
func TestHeatmaps(t *testing.T) {
	s := newSite(t)
	start := s.now.Add(-10 * time.Minute).Truncate(time.Minute)
	at := func(service string, seconds int, value int64, trace, span string) sent {
		p := cpu(service, start.Add(time.Duration(seconds)*time.Second), value)
		p.trace, p.span, p.instance = trace, span, "1"
		return p
	}
	s.write(payload(t, at("a", 0, 0, "", "")), payload(t, at("a", 1, 100, exampleTrace, spanOne)), payload(t, at("a", 60, 200, exampleTrace, spanTwo)))
	s.write(payload(t, at("a", 60, 199, otherTrace, spanOne)), payload(t, at("b", 61, 42, "", "")), payload(t, at("b", 119, 49, "", "")), payload(t, at("b", 121, 5, "", "")))
	q := s.querier()
	milli := start.UnixMilli()
	request := &pb.SelectHeatmapRequest{ProfileTypeID: typeCPU, Start: milli, End: milli + 120_000, Step: 60, GroupBy: []string{"service_name"}}
	ask := func() *pb.SelectHeatmapResponse { return must[pb.SelectHeatmapResponse](q, "SelectHeatmap", request) }
	want := map[string]map[int64]map[float64]int32{
		"service_name=a": {milli: {0: 1}, milli + 60_000: {100: 1, 190: 2}},
		"service_name=b": {milli + 120_000: {40: 2}},
	}
	assert.Equal(t, want, counted(t, ask()))
	for _, series := range ask().Series {
		for _, slot := range series.Slots {
			assert.Empty(t, slot.Exemplars)
		}
	}
	limit := int64(1)
	request.Limit = &limit
	delete(want, "service_name=b")
	assert.Equal(t, want, counted(t, ask()), "the series of the largest sum")
	request.Limit, request.LabelSelector = nil, `{service_name="b"}`
	assert.Equal(t, map[string]map[int64]map[float64]int32{"service_name=b": {milli + 120_000: {42: 1, 42 + 19*7.0/20: 1}}}, counted(t, ask()))

	request.LabelSelector, request.GroupBy, request.QueryType = "{}", nil, pb.HeatmapQueryType_HEATMAP_QUERY_TYPE_SPAN
	request.ExemplarType = pb.ExemplarType_EXEMPLAR_TYPE_SPAN
	spans := ask()
	assert.Equal(t, map[string]map[int64]map[float64]int32{"": {milli + 60_000: {100: 1, 195: 2}}}, counted(t, spans))
	exemplars := spans.Series[0].Slots[0].Exemplars
	require.Len(t, exemplars, 2, "the largest of each bucket")
	assert.Equal(t, []any{int64(200), spanTwo, exampleTrace, milli + 60_000}, []any{exemplars[1].Value, exemplars[1].SpanId, exemplars[1].TraceId, exemplars[1].Timestamp})
	names := map[string]string{}
	for _, label := range exemplars[1].Labels {
		names[label.Name] = label.Value
	}
	assert.Equal(t, map[string]string{"service_name": "a", "service_instance_id": "1"}, names)

	request.ExemplarType = pb.ExemplarType_EXEMPLAR_TYPE_INDIVIDUAL
	_, err := call[pb.SelectHeatmapRequest, pb.SelectHeatmapResponse](t.Context(), q, "SelectHeatmap", request)
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	request.LabelSelector, request.ExemplarType = `{service_name="none"}`, pb.ExemplarType_EXEMPLAR_TYPE_NONE
	assert.Empty(t, ask().Series)
}

// The ID of an exemplar selects its profile.
func TestExemplarsNameProfiles(t *testing.T) {
	q, from, to := formatSite(t)
	heatmap := must[pb.SelectHeatmapResponse](q, "SelectHeatmap", &pb.SelectHeatmapRequest{
		ProfileTypeID: typeCPU, Start: from, End: to, Step: 600, QueryType: 1, ExemplarType: 2,
	})
	found := 0
	for _, slot := range heatmap.Series[0].Slots {
		for _, e := range slot.Exemplars {
			found++
			graph := must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", &pb.SelectMergeStacktracesRequest{
				ProfileTypeID: typeCPU, Start: from, End: to, ProfileIdSelector: []string{e.ProfileId},
			}).Flamegraph
			assert.Equal(t, e.Value, graph.Total)
		}
	}
	assert.Equal(t, 3, found, "1 and 10 are in one bucket")
}

// A point of a time series names the profile, or the span, of the largest value in its step.
func TestExemplarsOfTimeSeries(t *testing.T) {
	q, from, to := formatSite(t)
	request := &pb.SelectSeriesRequest{ProfileTypeID: typeCPU, Start: from, End: to, Step: 60, GroupBy: []string{"service_name"}}
	for kind, want := range map[pb.ExemplarType][]*pb.Exemplar{
		0: nil, 1: nil, 2: {{Value: 1000, ProfileId: "7c9e6679-7425-40de-944b-e07fc1f90ae4"}},
		3: {{Value: 100, ProfileId: "7c9e6679-7425-40de-944b-e07fc1f90ae5", SpanId: spanOne, TraceId: otherTrace}},
	} {
		request.ExemplarType = kind
		series := must[pb.SelectSeriesResponse](q, "SelectSeries", request).Series
		require.Len(t, series, 1)
		require.Len(t, series[0].Points, 1)
		assert.InDelta(t, 1111, series[0].Points[0].Value, 0)
		got := series[0].Points[0].Exemplars
		require.Len(t, got, len(want), kind)
		for i, e := range got {
			assert.Equal(t, from+60_000, e.Timestamp)
			e.Timestamp, e.Labels = 0, nil
			assert.True(t, proto.Equal(want[i], e), "%v", e)
		}
	}
}
