// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/pprof/profile"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestQueryAPIWithPyroscopesClient calls the methods as Grafana's data source and profilecli do, with the client that Pyroscope
// publishes. Sums are those of the profiles that were pushed, by google/pprof.
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
	sums := map[string]int64{}
	start := time.Now().Add(-10 * time.Minute).Truncate(time.Minute)
	for i, service := range []string{"checkout", "cart", "cart"} {
		p := spanProfile(start.Add(time.Duration(i)*time.Minute), int64(i+1))
		sums[service] += totalOf(p, 0)
		c.push(t, service, profiletest.Pprof(t, p))
	}
	all := sums["cart"] + sums["checkout"]
	from, to := start.UnixMilli(), time.Now().UnixMilli()
	client := func(options ...connect.ClientOption) querierv1connect.QuerierServiceClient {
		return querierv1connect.NewQuerierServiceClient(http.DefaultClient, "http://"+view, options...)
	}
	var err error
	c.await(t, "profiles in files", func() bool {
		request := &querierv1.SelectMergeProfileRequest{ProfileTypeID: cpuType, LabelSelector: "{}", Start: from, End: to}
		var p *connect.Response[googlev1.Profile]
		p, err = client().SelectMergeProfile(t.Context(), connect.NewRequest(request)) //nolint:staticcheck // older clients call it
		return err == nil && sampleSum(p.Msg) == all
	})
	require.NoError(t, err)
	for name, q := range map[string]querierv1connect.QuerierServiceClient{
		"protobuf": client(), "JSON, compressed requests": client(connect.WithProtoJSON(), connect.WithSendGzip()),
	} {
		t.Run(name, func(t *testing.T) {
			checkSelections(t, q, from, to, sums)
			checkLabelsOfAPI(t, q, from, to)
		})
	}
}

const (
	cpuType  = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
	spanHex  = "00f067aa0ba902b7"
	traceHex = "4bf92f3577b34da6a3ce929d0e0e4736"
)

// spanProfile is a CPU profile with two threads and three stacks, one of them of a span.
func spanProfile(at time.Time, scale int64) *profile.Profile {
	period := &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{period}, PeriodType: period, Period: 10_000_000, TimeNanos: at.UnixNano(), DurationNanos: 10e9,
	}
	for i := range 4 {
		f := &profile.Function{ID: uint64(i + 1), Name: fmt.Sprintf("main.f%d", i), Filename: "main.go"}
		p.Function = append(p.Function, f)
		p.Location = append(p.Location, &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f, Line: int64(10 * i)}}})
	}
	l := p.Location
	p.Sample = []*profile.Sample{
		{Location: []*profile.Location{l[1], l[0]}, Value: []int64{1e7 * scale}, Label: map[string][]string{"thread": {"a"}}},
		{Location: []*profile.Location{l[2], l[0]}, Value: []int64{1e9 * scale}, Label: map[string][]string{"thread": {"b"}}},
		{Location: []*profile.Location{l[3], l[2], l[0]}, Value: []int64{3e7 * scale}, Label: map[string][]string{"trace_id": {traceHex}, "span_id": {spanHex}}},
	}
	return p
}

func totalOf(p *profile.Profile, of int) (sum int64) {
	for _, s := range p.Sample {
		sum += s.Value[of]
	}
	return sum
}

func sampleSum(p *googlev1.Profile) (sum int64) {
	for _, s := range p.Sample {
		sum += s.Value[0]
	}
	return sum
}

func checkSelections(t *testing.T, q querierv1connect.QuerierServiceClient, from, to int64, sums map[string]int64) {
	ctx := t.Context()
	request := func(service string) *querierv1.SelectMergeStacktracesRequest {
		return &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpuType, LabelSelector: fmt.Sprintf("{service_name=%q}", service), Start: from, End: to}
	}
	graph, err := q.SelectMergeStacktraces(ctx, connect.NewRequest(request("cart")))
	require.NoError(t, err)
	assert.Equal(t, sums["cart"], graph.Msg.Flamegraph.Total)
	assert.ElementsMatch(t, []string{"total", "main.f0", "main.f1", "main.f2", "main.f3"}, graph.Msg.Flamegraph.Names)

	span, err := q.SelectMergeSpanProfile(ctx, connect.NewRequest(&querierv1.SelectMergeSpanProfileRequest{ //nolint:staticcheck // older clients call it
		ProfileTypeID: cpuType, LabelSelector: "{}", SpanSelector: []string{spanHex}, Start: from, End: to,
	}))
	require.NoError(t, err)
	assert.Equal(t, int64(3e7*6), span.Msg.Flamegraph.Total, "of the span, by all services")

	diff, err := q.Diff(ctx, connect.NewRequest(&querierv1.DiffRequest{Left: request("checkout"), Right: request("cart")}))
	require.NoError(t, err)
	assert.Equal(t, []int64{sums["checkout"], sums["cart"]}, []int64{diff.Msg.Flamegraph.LeftTicks, diff.Msg.Flamegraph.RightTicks})

	nodes := int64(2)
	folded, err := q.SelectMergeProfile(ctx, connect.NewRequest(&querierv1.SelectMergeProfileRequest{ //nolint:staticcheck // older clients call it
		ProfileTypeID: cpuType, LabelSelector: `{service_name="checkout",thread!="a"}`, Start: from, End: to, MaxNodes: &nodes,
	}))
	require.NoError(t, err)
	assert.Equal(t, int64(1e9+3e7), sampleSum(folded.Msg))
	var names []string
	for _, f := range folded.Msg.Function {
		names = append(names, folded.Msg.StringTable[f.Name])
	}
	assert.ElementsMatch(t, []string{"main.f0", "main.f2", "other"}, names)
	data, err := folded.Msg.MarshalVT()
	require.NoError(t, err)
	_, err = profile.Parse(bytes.NewReader(data))
	require.NoError(t, err, "google/pprof reads it")

	series, err := q.SelectSeries(ctx, connect.NewRequest(&querierv1.SelectSeriesRequest{
		ProfileTypeID: cpuType, LabelSelector: "{}", Start: from, End: to, Step: 60, GroupBy: []string{"service_name"},
	}))
	require.NoError(t, err)
	got := map[string]int64{}
	for _, s := range series.Msg.Series {
		for _, p := range s.Points {
			got[s.Labels[0].Value] += int64(p.Value)
		}
	}
	assert.Equal(t, sums["cart"], got["cart"])
	assert.Equal(t, sums["checkout"], got["checkout"])
}

func checkLabelsOfAPI(t *testing.T, q querierv1connect.QuerierServiceClient, from, to int64) {
	ctx, matchers := t.Context(), []string{`{service_name=~"cart|checkout"}`}
	types, err := q.ProfileTypes(ctx, connect.NewRequest(&querierv1.ProfileTypesRequest{Start: from, End: to}))
	require.NoError(t, err)
	var ids []string
	for _, of := range types.Msg.ProfileTypes {
		ids = append(ids, of.ID)
	}
	assert.Contains(t, ids, cpuType)
	names, err := q.LabelNames(ctx, connect.NewRequest(&typesv1.LabelNamesRequest{Matchers: matchers, Start: from, End: to}))
	require.NoError(t, err)
	assert.Subset(t, names.Msg.Names, []string{"__profile_type__", "service_name", "thread"})
	values, err := q.LabelValues(ctx, connect.NewRequest(&typesv1.LabelValuesRequest{Name: "service_name", Matchers: matchers, Start: from, End: to}))
	require.NoError(t, err)
	assert.Equal(t, []string{"cart", "checkout"}, values.Msg.Names)
	series, err := q.Series(ctx, connect.NewRequest(&querierv1.SeriesRequest{Matchers: matchers, LabelNames: []string{"service_name", "__profile_type__"}, Start: from, End: to}))
	require.NoError(t, err)
	assert.Len(t, series.Msg.LabelsSet, 2)
	stats, err := q.GetProfileStats(ctx, connect.NewRequest(&typesv1.GetProfileStatsRequest{}))
	require.NoError(t, err)
	assert.True(t, stats.Msg.DataIngested)
	_, err = q.SelectHeatmap(ctx, connect.NewRequest(&querierv1.SelectHeatmapRequest{}))
	assert.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err), "a method that is not served")
}
