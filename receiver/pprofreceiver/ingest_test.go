// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

// withTypes is samplePprof with these sample types, and no time of its own.
func withTypes(types ...string) *profile.Profile {
	p := samplePprof("/bin/app", 3)
	p.TimeNanos, p.DurationNanos = 0, 0
	p.SampleType, p.Sample[0].Value = nil, nil
	for i, name := range types {
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: "count"})
		p.Sample[0].Value = append(p.Sample[0].Value, int64(i+1))
	}
	return p
}

// A profile of pyroscope-go is passed on completely, with the resource that the parameter name states.
func TestIngest(t *testing.T) {
	p := samplePprof("/bin/app", 3)
	next := newSink(t)
	b := startTestReceiver(t, serverYAML+"resource_attributes: {deployment.environment.name: test}", next)
	name := "check out{region=eu,__session_id__=abc,otel.scope.name=com.grafana.pyroscope/go,otel.scope.version=v1.4.3,process.runtime.name=go}"
	query := url.Values{
		"name": {name}, "from": {"1700000000000000000"}, "until": {"1700000010000000000"}, "spyName": {"gospy"},
		"sampleRate": {"100"}, "units": {"samples"}, "aggregationType": {"sum"},
	}
	got := b.sendForm("/ingest?"+query.Encode(), formPart{"profile", "profile.pprof", profiletest.Gzip(t, profiletest.Pprof(t, p))})
	require.Equal(t, http.StatusOK, got.status, got.body)

	assertHolds(t, p, next.only())
	resource, scope := next.attributesOf()
	assert.Equal(t, map[string]any{
		"service.name":                "check out",
		"service.instance.id":         "abc",
		"region":                      "eu",
		"process.runtime.name":        "go",
		"process.executable.name":     "app",
		"pyroscope.spy":               "gospy",
		"deployment.environment.name": "test",
	}, resource)
	delete(scope, "pprof.scope.sample_type_order")
	assert.Equal(t, map[string]any{
		"profile.type":       "cpu",
		"otel.scope.name":    "com.grafana.pyroscope/go",
		"otel.scope.version": "v1.4.3",
	}, scope)
	for _, v := range arrivals(t, next.only()) {
		assert.Equal(t, "delta", v.temporality)
		assert.Empty(t, v.display)
		assert.EqualValues(t, p.TimeNanos, v.time, "the time of the payload does not change")
		assert.EqualValues(t, p.DurationNanos, v.duration)
	}
}

// Temporality and display names come from the configuration of sample types, as pyroscope-go sends it,
// and without one from the request.
func TestIngestTemporality(t *testing.T) {
	const from, until = 1_700_000_000_000_000_000, 1_700_000_015_000_000_000
	for _, row := range []struct {
		name        string
		types       []string
		config      string
		aggregation string
		kind        any
		temporality []string // of each type, in the order of types
		display     []string
	}{
		{
			name: "heap", types: []string{"alloc_objects", "alloc_space", "inuse_objects", "inuse_space"},
			config: `{"alloc_objects":{"units":"objects"},"alloc_space":{"units":"bytes"},
				"inuse_space":{"units":"bytes","aggregation":"average"},"inuse_objects":{"units":"objects","aggregation":"average"}}`,
			kind: "heap", temporality: []string{"delta", "delta", "instant", "instant"}, display: []string{"", "", "", ""},
		},
		{
			name: "mutex", types: []string{"contentions", "delay"},
			config: `{"contentions":{"display-name":"mutex_count","units":"lock_samples"},"delay":{"display-name":"mutex_duration","units":"lock_nanoseconds"}}`,
			kind:   "mutex", temporality: []string{"delta", "delta"}, display: []string{"mutex_count", "mutex_duration"},
		},
		{
			name: "block, counted from the start", types: []string{"contentions", "delay"},
			config: `{"contentions":{"display-name":"block_count","cumulative":true},"delay":{"display-name":"block_duration","cumulative":true}}`,
			kind:   "block", temporality: []string{"cumulative", "cumulative"}, display: []string{"block_count", "block_duration"},
		},
		{
			name: "goroutines", types: []string{"goroutine"},
			config:      `{"goroutine":{"display-name":"goroutines","units":"goroutines","aggregation":"average"}}`,
			aggregation: "average", kind: "goroutine", temporality: []string{"instant"}, display: []string{"goroutines"},
		},
		{
			name: "leaked goroutines", types: []string{"goroutineleak"},
			config: `{"goroutineleak":{"display-name":"goroutine_leak","units":"goroutines","aggregation":"average"}}`,
			kind:   "goroutineleak", temporality: []string{"instant"}, display: []string{"goroutine_leak"},
		},
		{name: "leaked goroutines, without a config", types: []string{"goroutineleak"}, aggregation: "sum", kind: "goroutineleak", temporality: []string{"instant"}},
		{name: "Go's CPU, without a config", types: []string{"samples", "cpu"}, aggregation: "sum", kind: "cpu", temporality: []string{"delta", "delta"}},
		{name: "Node.js' heap", types: []string{"objects", "space"}, aggregation: "sum", kind: "heap", temporality: []string{"instant", "instant"}},
		{name: "Node.js' wall", types: []string{"sample", "wall"}, kind: "wall", temporality: []string{"", ""}},
		{name: "averaged", types: []string{"load"}, aggregation: "average", temporality: []string{"instant"}},
		{name: "nothing known", types: []string{"things"}, temporality: []string{""}},
		{name: "another type's config", types: []string{"things"}, config: `{"other":{"cumulative":true}}`, temporality: []string{""}},
		{name: "an empty config", types: []string{"things"}, config: `{}`, temporality: []string{""}},
	} {
		t.Run(row.name, func(t *testing.T) {
			next := newSink(t)
			b := startTestReceiver(t, serverYAML, next)
			p := withTypes(row.types...)
			parts := []formPart{{"profile", "p", profiletest.Pprof(t, p)}, {"prev_profile", "p", []byte("whatever")}}
			if row.config != "" {
				parts = append(parts, formPart{"sample_type_config", "c.json", []byte(row.config)})
			}
			got := b.sendForm("/ingest?name=app&from=1700000000&until=1700000015000&aggregationType="+row.aggregation, parts...)
			require.Equal(t, http.StatusOK, got.status, got.body)

			_, scope := next.attributesOf()
			assert.Equal(t, row.kind, scope["profile.type"])
			all := arrivals(t, next.only())
			require.Len(t, all, len(row.types))
			for _, v := range all {
				i := v.value - 1
				assert.Equal(t, "count", v.unit, "the unit is that of the values")
				assert.Equal(t, row.temporality[i], v.temporality, v.sampleType)
				if row.display != nil {
					assert.Equal(t, row.display[i], v.display, v.sampleType)
				}
				assert.EqualValues(t, from, v.time, v.sampleType)
				wantDuration := 0
				if slices.Contains(row.temporality, "delta") { // sample types of a pprof share their times
					wantDuration = until - from
				}
				assert.EqualValues(t, wantDuration, v.duration, v.sampleType)
			}
			assert.Equal(t, map[string]int64{"previous_profile": 1}, b.counts("otelcol_receiver_pprof_skipped_attachments", "attachment"))
		})
	}
}

// Skipped parts are counted only for accepted requests.
func TestIngestCountsSkippedPartsOfAcceptedRequests(t *testing.T) {
	parts := []formPart{{"profile", "p", profiletest.Pprof(t, samplePprof("/bin/app", 1))}, {"prev_profile", "p", []byte("x")}, {"notes", "", []byte("x")}}
	for _, row := range []struct {
		next error
		want map[string]int64
	}{
		{errors.New("not now"), nil},
		{nil, map[string]int64{"previous_profile": 1, "other": 1}},
	} {
		b := startTestReceiver(t, serverYAML, consumertest.NewErr(row.next))
		b.sendForm(httpserver.IngestPath, parts...)
		assert.Equal(t, row.want, b.counts("otelcol_receiver_pprof_skipped_attachments", "attachment"))
	}
}

func TestIngestRejections(t *testing.T) {
	good := profiletest.Pprof(t, samplePprof("/bin/app", 3))
	profilePart := formPart{"profile", "profile.pprof", good}
	many := strings.Repeat("a=b,", 300)
	testExchanges(t, exchange{}, []exchange{
		{name: "folded stacks without a value", path: "/ingest?name=app", body: []byte("main;work\n"), status: 400, says: "line 1: \"main;work\": must be a stack"},
		{name: "folded stacks that overflow", path: "/ingest?name=app", body: []byte("main 9223372036854775807\n"), status: 400, says: "line 1: value is 9223372036854775807"},
		{name: "tree", path: "/ingest?name=app&format=tree", body: []byte("x"), status: 415, says: "format=groups"},
		{name: "a form of folded stacks", path: "/ingest?name=app&format=groups", parts: []formPart{{"profile", "", []byte("main 1\n")}}, status: 415, says: "want a form with a part named profile or jfr"},
		{name: "another form", path: "/ingest?name=app", body: []byte("main 1\n"), contentType: "multipart/form-data; boundary=x", status: 400, says: "body: not a form with the boundary that Content-Type states"},
		{name: "pprof without the format", path: "/ingest?name=app", body: good, status: 400, says: "profile, read as folded stacks without the parameter \"format\": line 2"},
		{name: "text as a JFR", path: "/ingest?name=app&format=jfr", body: []byte("main 1\n"), status: 400, says: "profile: looks like text"},
		{name: "damaged gzip", path: "/ingest?name=app&format=pprof", body: append(profiletest.Gzip(t, good), 0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 0), status: 400, says: "bytes: invalid header"},
		{name: "half a JFR", path: "/ingest?name=app&format=jfr", body: []byte("FLR\x00"), status: 400, says: "jfr: chunk 1, byte 0"},
		{name: "folded text as pprof", path: "/ingest?name=app&format=pprof", body: []byte("main;work 3\n"), status: 400, says: "pprof"},
		{name: "no profile", path: "/ingest?name=app", parts: []formPart{{"sample_type_config", "", []byte("{}")}}, status: 400, says: "no part named profile"},
		{name: "two profiles", path: "/ingest?name=app", parts: []formPart{profilePart, profilePart}, status: 400, says: "duplicate part"},
		{name: "an empty profile", path: "/ingest?name=app", parts: []formPart{{"profile", "", nil}}, status: 400, says: "empty"},
		{name: "a config that is no JSON", path: "/ingest?name=app", parts: []formPart{profilePart, {"sample_type_config", "", []byte("{s3cret")}}, status: 400, says: "malformed JSON at byte"},
		{name: "a config of another kind", path: "/ingest?name=app", parts: []formPart{profilePart, {"sample_type_config", "", []byte(`{"cpu":{"cumulative":"s3cret"}}`)}}, status: 400, says: `wrong type at byte 29, of field "cumulative"`},
		{name: "a large config", path: "/ingest?name=app", parts: []formPart{profilePart, {"sample_type_config", "", make([]byte, httpserver.MaxDocument+1)}}, status: 413, says: "sample_type_config"},
		{name: "a config of many types", path: "/ingest?name=app", parts: []formPart{profilePart, {"sample_type_config", "", []byte("{" + strings.Repeat(`"a":{},`, 1025) + `"a":{}}`)}}, status: 413, says: "sample_type_config\": braces: 1027"},
		{name: "a time of 12 digits", path: "/ingest?name=app&from=170000000000", parts: []formPart{profilePart}, status: 400, says: "\"from\": not a time"},
		{name: "no end of the labels", path: "/ingest?name=app{a=b", parts: []formPart{profilePart}, status: 400, says: "\"name\": must be an application"},
		{name: "a label without a value", path: "/ingest?name=app{a}", parts: []formPart{profilePart}, status: 400, says: "\"name\": must be an application"},
		{name: "a label twice", path: "/ingest?name=app{a=b,a=c}", parts: []formPart{profilePart}, status: 400, says: "duplicate \"a\""},
		{name: "a label that is not UTF-8", path: "/ingest?name=app{a=%ff}", parts: []formPart{profilePart}, status: 400, says: "UTF-8"},
		{name: "many labels", path: "/ingest?name=app{" + many + "}", parts: []formPart{profilePart}, status: 413, says: "limit of 256"},
	})
}

func TestIngestNames(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"app":                            {"service.name": "app"},
		" app {}":                        {"service.name": "app"},
		"app.cpu{}":                      {"service.name": "app.cpu"},
		"app{,a=b,}":                     {"service.name": "app", "a": "b"},
		"app{ a = b c }":                 {"service.name": "app", "a": "b c"},
		"app{a=b=c}":                     {"service.name": "app", "a": "b=c"},
		"app{service_name=real}":         {"service.name": "real", "app_name": "app"},
		"app{service_name=app}":          {"service.name": "app"},
		"app{service_name=x,app_name=y}": {"service.name": "x", "app_name": "y"},
		"app{service.name=real}":         {"service.name": "real", "app_name": "app"},
		"app{service.instance.id=1,__session_id__=2}": {"service.name": "app", "service.instance.id": "1"},
		"app{__internal__=1}":                         {"service.name": "app"},
		"{a=b}":                                       {"service.name": "unknown_service:app", "a": "b"},
		"":                                            {"service.name": "unknown_service:app"},
	} {
		pd := passedOn(t, "", func(b *testReceiver) answer {
			return b.post("/ingest?format=pprof&name="+url.QueryEscape(name), profiletest.Pprof(t, samplePprof("/bin/app", 1)))
		})
		resource := pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
		delete(resource, "process.executable.name")
		assert.Equal(t, want, resource, name)
	}
}

const foldedQuery = httpserver.IngestPath + "?name=cart&from=1700000000&until=1700000010"

func TestIngestFoldedStacks(t *testing.T) {
	const body = "main;work 3\nmain;idle 1"
	for query, want := range map[string]string{
		"":                             "cpu nanoseconds main;idle 10000000 main;work 30000000",
		"&format=groups&units=samples": "cpu nanoseconds main;idle 10000000 main;work 30000000",
		"&format=folded&sampleRate=1000&spyName=pyroscope-rs":  "cpu nanoseconds main;idle 1000000 main;work 3000000",
		"&format=collapsed&units=bytes":                        "alloc_space bytes main;idle 1 main;work 3",
		"&format=groups&units=objects&aggregationType=average": "inuse_objects count main;idle 1 main;work 3",
		"&format=groups&units=lock_nanoseconds":                "delay nanoseconds main;idle 1 main;work 3",
		"&format=groups&units=lock_samples":                    "contentions count main;idle 1 main;work 3",
		"&format=groups&units=goroutines":                      "goroutines count main;idle 1 main;work 3",
	} {
		pd := passedOn(t, "", func(b *testReceiver) answer { return b.post(foldedQuery+query, []byte(body)) })
		expanded := profiletest.Expand(t, pd)
		text, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
		require.NoError(t, err)
		assert.Equal(t, want, expanded[0].Type+" "+expanded[0].Unit+" "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " "), query)
		profile := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		assert.EqualValues(t, uint64(1700000000e9), profile.Time())
		if want[:5] != "inuse" && want[:5] != "gorou" { // snapshots have none
			assert.Equal(t, uint64(10e9), profile.DurationNano())
		}
		assert.False(t, profile.ProfileID().IsEmpty())
	}
}

func TestIngestCountsLines(t *testing.T) {
	pd := passedOn(t, "", func(b *testReceiver) answer {
		return b.post(foldedQuery+"&format=lines&sampleRate=1000", []byte("main;work 7\nmain;idle\nmain;work 7\n"))
	})
	text, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	require.NoError(t, err)
	assert.Equal(t, "main;idle 1000000\nmain;work 7 2000000\n", string(text))
}
