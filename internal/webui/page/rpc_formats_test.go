// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi"
	pb "github.com/otelcol-profiles/otelcol-profiles/internal/webui/queryapi/querierpb"
)

const (
	otherTrace = "7c9e66797425440de944be07fc1f90ae"
	spanOne    = "9a517183f26a089d"
	spanTwo    = "5a4fe264a9c987fe"
	profileID  = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
)

// formatSite has profiles of several traces and spans, the first of which has profileID.
func formatSite(t *testing.T) (q querier, from, to int64) {
	t.Helper()
	s := newSite(t)
	at := s.now.Add(-time.Minute)
	one := func(function, caller, trace, span string, value int64) sent {
		p := cpu("checkout", at, value)
		p.function, p.caller, p.trace, p.span = function, caller, trace, span
		return p
	}
	payloads := []pprofile.Profiles{
		payload(t, one(`encode "x"\y`, "main", exampleTrace, spanOne, 1)), payload(t, one("parse", "main", exampleTrace, spanTwo, 10)),
		payload(t, one("parse", "parse", otherTrace, spanOne, 100)), payload(t, one("main", "", "", "", 1000)),
	}
	for i, pd := range payloads {
		for p := range sampletypes.ProfilesOf(pd) {
			p.SetProfileID([16]byte{0x7c, 0x9e, 0x66, 0x79, 0x74, 0x25, 0x40, 0xde, 0x94, 0x4b, 0xe0, 0x7f, 0xc1, 0xf9, 0x0a, 0xe7 - byte(i)})
		}
	}
	s.write(payloads[:3]...)
	s.write(payloads[3])
	return s.querier(), at.Add(-time.Minute).UnixMilli(), at.Add(time.Minute).UnixMilli()
}

// decodeTree returns the values of each function with its caller, as Pyroscope's clients read a tree.
func decodeTree(t *testing.T, encoded []byte) map[string]int64 {
	t.Helper()
	sums, r := map[string]int64{}, strings.NewReader(string(encoded))
	number := func() uint64 {
		n, err := binary.ReadUvarint(r)
		require.NoError(t, err)
		return n
	}
	var read func(caller string)
	read = func(caller string) {
		text := make([]byte, number())
		_, err := io.ReadFull(r, text)
		require.NoError(t, err)
		if self := number(); self != 0 {
			sums[caller+"/"+string(text)] += int64(self)
		}
		for range number() {
			read(string(text))
		}
	}
	if len(encoded) > 0 {
		read("root")
	}
	require.Zero(t, r.Len(), "bytes after the tree")
	return sums
}

// pprofStacks returns the values of each function with its caller.
func pprofStacks(p *pb.Profile) map[string]int64 {
	names, locations, sums := map[uint64]string{}, map[uint64]string{}, map[string]int64{}
	for _, f := range p.GetFunction() {
		names[f.Id] = p.StringTable[f.Name]
	}
	for _, l := range p.GetLocation() {
		locations[l.Id] = names[l.Line[0].FunctionId]
	}
	for _, s := range p.GetSample() {
		caller := ""
		if len(s.LocationId) > 1 {
			caller = locations[s.LocationId[1]]
		}
		sums[caller+"/"+locations[s.LocationId[0]]] += s.Value[0]
	}
	return sums
}

// Each format has the sums of the selected samples, whatever selects them.
func TestFormatsAndSelectorsHaveTheSumsOfTheSamples(t *testing.T) {
	q, from, to := formatSite(t)
	const encode, parse, again, self = `main/encode "x"\y`, "main/parse", "parse/parse", "/main"
	for name, test := range map[string]struct {
		profiles, traces, spans []string
		want                    map[string]int64
	}{
		"all":         {want: map[string]int64{encode: 1, parse: 10, again: 100, self: 1000}},
		"a trace":     {traces: []string{exampleTrace}, want: map[string]int64{encode: 1, parse: 10}},
		"two traces":  {traces: []string{exampleTrace, otherTrace}, want: map[string]int64{encode: 1, parse: 10, again: 100}},
		"a span":      {spans: []string{spanOne}, want: map[string]int64{encode: 1, again: 100}},
		"two spans":   {spans: []string{spanOne, spanTwo}, want: map[string]int64{encode: 1, parse: 10, again: 100}},
		"a profile":   {profiles: []string{profileID}, want: map[string]int64{encode: 1}},
		"its trace":   {profiles: []string{strings.ReplaceAll(profileID, "-", "")}, traces: []string{exampleTrace}, want: map[string]int64{encode: 1}},
		"other trace": {profiles: []string{profileID}, traces: []string{otherTrace}, want: map[string]int64{}},
		"no such":     {spans: []string{"00f067aa0ba902b7"}, want: map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(format pb.ProfileFormat) *pb.SelectMergeStacktracesResponse {
				return must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", &pb.SelectMergeStacktracesRequest{
					ProfileTypeID: typeCPU, LabelSelector: "{}", Start: from, End: to, Format: format,
					ProfileIdSelector: test.profiles, TraceIdSelector: test.traces, SpanSelector: test.spans,
				})
			}
			for _, format := range []pb.ProfileFormat{0, 1} {
				graph := answer(format).Flamegraph
				assert.Equal(t, test.want, q.stacks(graph.Names, graph.Levels, 0, 1))
			}
			assert.Equal(t, test.want, decodeTree(t, answer(2).Tree))
			assert.Equal(t, test.want, pprofStacks(answer(4).GetPprof().GetProfile()))
			assert.NotNil(t, answer(4).GetPprof().GetProfile(), "an empty profile is one")
			total, selfs := int64(0), int64(0)
			for _, value := range test.want {
				total += value
			}
			dot := answer(3).Dot
			require.Regexp(t, `(?s)\Adigraph "process_cpu:cpu:nanoseconds::" \{\n.*\}\n\z`, dot)
			for _, node := range regexp.MustCompile(`\[label="(?:[^"\\]|\\.)*\\n(\d+) of \d+"\];`).FindAllStringSubmatch(dot, -1) {
				value, err := strconv.ParseInt(node[1], 10, 64)
				require.NoError(t, err)
				selfs += value
			}
			assert.Equal(t, total, selfs, "%s", dot)
			if len(test.spans) > 0 {
				merged := must[pb.SelectMergeSpanProfileResponse](q, "SelectMergeSpanProfile", &pb.SelectMergeSpanProfileRequest{
					ProfileTypeID: typeCPU, LabelSelector: "{}", Start: from, End: to, Format: 2, SpanSelector: test.spans,
				})
				assert.Equal(t, test.want, decodeTree(t, merged.Tree))
				return
			}
			assert.Equal(t, test.want, pprofStacks(must[pb.Profile](q, "SelectMergeProfile", &pb.SelectMergeProfileRequest{
				ProfileTypeID: typeCPU, LabelSelector: "{}", Start: from, End: to, ProfileIdSelector: test.profiles, TraceIdSelector: test.traces,
			})))
		})
	}
}

// A function, and a call, count once in each stack of a graph for Graphviz.
func TestGraphsForGraphviz(t *testing.T) {
	q, from, to := formatSite(t)
	request := &pb.SelectMergeStacktracesRequest{ProfileTypeID: typeCPU, Start: from, End: to, Format: 3}
	want := `digraph "process_cpu:cpu:nanoseconds::" {
node [shape=box];
N1 [label="main\n1000 of 1011"];
N2 [label="parse\n110 of 110"];
N3 [label="encode \"x\"\\y\n1 of 1"];
N2 -> N2 [label="100"];
N1 -> N2 [label="10"];
N1 -> N3 [label="1"];
}
`
	assert.Equal(t, want, must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", request).Dot)
	two := int64(2)
	request.MaxNodes = &two
	assert.NotContains(t, must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", request).Dot, "encode")
}

func TestAsyncQueriesAreAnsweredAtOnce(t *testing.T) {
	q, from, to := formatSite(t)
	request := &pb.SelectMergeStacktracesRequest{ProfileTypeID: typeCPU, Start: from, End: to, Async: &pb.AsyncQueryRequest{Type: 1}}
	answer := must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", request)
	assert.Equal(t, pb.AsyncQueryStatus_ASYNC_QUERY_STATUS_SUCCESS, answer.GetAsync().GetStatus())
	assert.EqualValues(t, 1111, answer.Flamegraph.Total)
	request.Async = nil
	assert.Nil(t, must[pb.SelectMergeStacktracesResponse](q, "SelectMergeStacktraces", request).Async)
}

func TestSelectorsThatAreNotServed(t *testing.T) {
	q, _, _ := formatSite(t)
	stacks := &pb.StackTraceSelector{CallSite: []*pb.CallSite{{Name: "main"}}}
	for want, request := range map[string]*pb.SelectMergeStacktracesRequest{
		"must not both be set": {TraceIdSelector: []string{exampleTrace}, SpanSelector: []string{spanOne}},
		"16 hex digits":        {SpanSelector: []string{"x"}},
		"32 hex digits":        {TraceIdSelector: []string{spanOne}},
		"or a UUID":            {ProfileIdSelector: []string{"x"}},
		"not supported":        {StackTraceSelector: stacks},
		"format is 9":          {Format: 9},
	} {
		request.ProfileTypeID = typeCPU
		_, err := call[pb.SelectMergeStacktracesRequest, pb.SelectMergeStacktracesResponse](t.Context(), q, "SelectMergeStacktraces", request)
		require.ErrorContains(t, err, want)
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), want)
	}
	_, err := call[pb.SelectSeriesRequest, pb.SelectSeriesResponse](t.Context(), q, "SelectSeries", &pb.SelectSeriesRequest{ProfileTypeID: typeCPU, Step: 1, StackTraceSelector: stacks})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
	_, err = call[pb.SelectMergeProfileRequest, pb.Profile](t.Context(), q, "SelectMergeProfile", &pb.SelectMergeProfileRequest{ProfileTypeID: typeCPU, StackTraceSelector: stacks})
	assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
}

// A method that is not served answers in the protocol, whatever its name.
func TestUnservedMethodsAnswerInTheProtocol(t *testing.T) {
	q := newSite(t).querier()
	for _, method := range []string{"AnalyzeQuery", "<b>", "a/b", ""} {
		_, err := call[pb.ProfileTypesRequest, pb.ProfileTypesResponse](t.Context(), q, method, &pb.ProfileTypesRequest{})
		assert.Equal(t, connect.CodeUnimplemented, connect.CodeOf(err), method)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, q.url+queryapi.Prefix+"AnalyzeQuery", strings.NewReader("{}"))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Equal(t, "application/json", response.Header.Get("Content-Type"))
	assert.JSONEq(t, fmt.Sprintf(`{"code":"unimplemented","message":%q}`, `method "AnalyzeQuery" is not served`), string(body))
}
