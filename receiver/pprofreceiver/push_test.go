// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// pprofsOf returns all pprofs of pd.
func pprofsOf(t *testing.T, pd pprofile.Profiles) (pprofs []*profile.Profile) {
	t.Helper()
	for p, err := range (pproftranslator.Marshaler{}).All(t.Context(), pd) {
		require.NoError(t, err)
		pprofs = append(pprofs, p.Profile)
	}
	return pprofs
}

// Each status, with its body and headers.
func TestStatuses_R10(t *testing.T) {
	good := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3))
	zeros := bytes.Repeat([]byte{0}, 3<<20) // more than max_decompressed_size below
	badStack := profiletest.CPUPprof("/bin/app", 1)
	badStack.Sample[0].Value = []int64{1, 2, 3}
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(good)
	require.NoError(t, err)
	otlp := profiletest.Proto(t, pd)
	away := consumertest.NewErr(errors.New("backend is away"))
	never := consumertest.NewErr(consumererror.NewPermanent(errors.New("backend says no")))
	invalid := consumertest.NewErr(consumererror.NewPermanent(fmt.Errorf("profiles_dedup: %w", status.Error(codes.InvalidArgument, "too many sample types"))))
	both := consumertest.NewErr(errors.Join(consumererror.NewPermanent(errors.New("backend says no")), errors.New("backend is away")))

	parameters := func(n int) string {
		path := "/v1/pprof?"
		for i := range n {
			path += fmt.Sprintf("a.%d=b&", i)
		}
		return strings.TrimSuffix(path, "&")
	}
	testExchanges(t, exchange{path: "/v1/pprof"}, []exchange{
		{name: "gzip by magic", body: profiletest.Gzip(t, good), status: 204},
		{name: "zstd by magic", body: profiletest.Zstd(t, good), status: 204},
		{name: "Content-Encoding gzip", body: profiletest.Gzip(t, good), headers: []string{"Content-Encoding", "gzip"}, status: 204},
		{name: "Content-Encoding zstd", body: profiletest.Zstd(t, good), headers: []string{"Content-Encoding", "zstd"}, status: 204},
		{name: "Content-Encoding identity", body: good, headers: []string{"Content-Encoding", "identity"}, status: 204},
		{name: "curl's content type", body: good, contentType: "application/x-www-form-urlencoded", status: 204},

		{name: "as many parameters as may be", path: parameters(httpserver.MaxEntries), body: good, status: 204},

		{name: "no body", status: 400, says: "body: empty"},
		{name: "nothing in gzip", body: profiletest.Gzip(t, nil), status: 400, says: "empty"},
		{name: "text", body: []byte("hello world"), status: 400, says: "body: looks like text; want a pprof profile"},
		{name: "pprof from before protobuf", body: []byte(legacyHeap), status: 400, says: "convert it with `otelprof convert"},
		{name: "OTLP", body: otlp, status: 400, says: "body: looks like OTLP ... `otlp` receiver"},
		{name: "curl -d", body: curlData(profiletest.Gzip(t, good)), contentType: "application/x-www-form-urlencoded", status: 400, says: "body: gzip"},
		{name: "cut off", body: good[:len(good)-3], status: 400},
		{name: "too many values", body: profiletest.Pprof(t, badStack), status: 400, says: "sample ... 0"},
		{name: "not gzip as said", body: good, headers: []string{"Content-Encoding", "gzip"}, status: 400, says: "not gzip"},
		{name: "too many layers", body: profiletest.Gzip(t, profiletest.Gzip(t, profiletest.Gzip(t, profiletest.Gzip(t, good)))), status: 400, says: "more than 3 layers"},
		{name: "unknown parameter", path: "/v1/pprof?service=checkout", body: good, status: 400, says: "\"service\" is unknown ... service.name"},
		{name: "empty parameter", path: "/v1/pprof?=x", body: good, status: 400, says: "empty name"},
		{name: "repeated parameter", path: "/v1/pprof?a.b=1&a.b=2", body: good, status: 400, says: "\"a.b\" ... 2 times"},
		{name: "empty profile type", path: "/v1/pprof?profile_type=", body: good, status: 400, says: "\"profile_type\" is empty"},
		{name: "not UTF-8", path: "/v1/pprof?a.b=%ff", body: good, status: 400, says: "\"a.b\" ... UTF-8"},
		{name: "malformed query", path: "/v1/pprof?a.b=%zz", body: good, status: 400, says: "query: malformed"},

		{name: "another path", path: "/v1/profiles", body: good, status: 404, says: "/v1/pprof"},
		{name: "GET", method: http.MethodGet, status: 405, says: "GET ... must be POST"},

		{name: "plain too large", body: zeros, status: 413, reason: "body_size"},
		{name: "gzip too large", body: profiletest.Gzip(t, zeros), status: 413, says: "body ... limit", reason: "limit"},
		{name: "many parameters", path: parameters(httpserver.MaxEntries + 1), body: good, status: 413, says: "query: parameters: 257, more than the limit of 256", reason: "limit"},
		{name: "gzip in Content-Encoding too large", body: profiletest.Gzip(t, profiletest.Gzip(t, zeros)), headers: []string{"Content-Encoding", "gzip"}, status: 413},

		{name: "half a JFR", body: []byte("FLR\x00\x00\x02\x00\x00"), status: 400, says: "jfr: chunk 1, byte 0"},
		{name: "Content-Encoding br", body: good, headers: []string{"Content-Encoding", "br"}, status: 415, says: "\"br\" ... gzip"},

		{name: "permanent", body: good, next: never, status: 500, says: "backend says no"},
		{name: "invalid for the pipeline", body: good, next: invalid, status: 400, says: "too many sample types", reason: "pipeline_permanent"},
		{name: "retryable", body: good, next: away, status: 503, says: "backend is away"},
		{name: "retryable, not UTF-8", body: good, next: consumertest.NewErr(errors.New("bad \xff bytes")), status: 503, says: "bad \ufffd bytes"},
		{name: "one of two pipelines unavailable", body: good, next: both, status: 503, says: "backend is away"},
	})
}

// Without a Content-Length, a body that is too large is noticed while it is read.
func TestBodyLimit(t *testing.T) {
	b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_request_body_size: 1000}", consumertest.NewNop())
	assert.Equal(t, 204, b.push("", profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3))).status)
	chunked, err := b.send(http.MethodPost, "/v1/pprof", struct{ *bytes.Reader }{bytes.NewReader(make([]byte, 5000))})
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, chunked.status)
	assert.Contains(t, chunked.body, "1000 bytes")
}

// A pushed profile is passed on completely, with the attributes that its request states.
func TestPushedProfilesAreComplete(t *testing.T) {
	p := profiletest.CPUPprof("/bin/app", 3)
	body := profiletest.Pprof(t, p)
	ingestQuery := url.Values{
		"name":    {"check out{region=eu,__session_id__=abc,otel.scope.name=com.grafana.pyroscope/go,otel.scope.version=v1.4.3,process.runtime.name=go}"},
		"spyName": {"gospy"}, "from": {"1600000000"}, "until": {"1600000010"}, "sampleRate": {"100"}, "units": {"samples"}, "aggregationType": {"sum"},
	}
	for name, test := range map[string]struct {
		send            func(b *testReceiver) answer
		resource, scope map[string]any // attributes besides those of all
		skipped         map[string]int64
	}{
		"pprof": {
			send: func(b *testReceiver) answer {
				return b.push("?service.name=checkout&host.name=a+b&.region=eu&profile_type=cpu", body)
			},
			resource: map[string]any{"service.name": "checkout", "host.name": "a b", "region": "eu"},
		},
		"ingest": {
			send: func(b *testReceiver) answer {
				return b.sendForm("/ingest?"+ingestQuery.Encode(), part("profile", "profile.pprof", body), part("prev_profile", "p", nil), part("notes", "", nil))
			},
			resource: map[string]any{
				"service.name": "check out", "service.instance.id": "abc", "region": "eu", "process.runtime.name": "go", "pyroscope_spy": "gospy",
			},
			scope:   map[string]any{"otel.scope.name": "com.grafana.pyroscope/go", "otel.scope.version": "v1.4.3"},
			skipped: map[string]int64{"previous_profile": 1, "other": 1},
		},
		"connect": {
			send: func(b *testReceiver) answer {
				return b.connect(profiletest.PushRequest(profiletest.RawSeries(body, "service_name", "checkout", "__name__", "process_cpu",
					"__delta__", "false", "__session_id__", "s1", "region", "eu", "pyroscope_spy", "pyroscope-rs")))
			},
			resource: map[string]any{"service.name": "checkout", "service.instance.id": "s1", "region": "eu", "pyroscope_spy": "pyroscope-rs"},
		},
		"datadog": {
			send: func(b *testReceiver) answer {
				return b.sendForm(httpserver.DatadogPath, attached("cpu.pprof.gz", profiletest.Gzip(t, body)), attached("metrics.json", []byte(`[["go_mem",1]]`)),
					attached("other.trace", []byte("trace")), attached("code-provenance.json", []byte("{}")), event(goEvent))
			},
			resource: map[string]any{
				"service.name": "checkout", "service.instance.id": "abc-1", "service.version": "1.2", "host.name": "node-1", "host.arch": "amd64",
				"process.pid": int64(42), "process.runtime.name": "go", "process.runtime.version": "1.26", "telemetry.sdk.language": "go", "team": "a:b", "flag": "",
			},
			skipped: map[string]int64{"metrics": 1, "trace": 1, "other": 1},
		},
	} {
		next := &sink{t: t}
		b := startTestReceiver(t, serverYAML+"resource_attributes: {deployment.environment.name: test, host.name: from-config}", next)
		got := test.send(b)
		require.Less(t, got.status, 300, "%s: %s", name, got.body)
		assertHolds(t, p, next.only())
		want := map[string]any{"deployment.environment.name": "test", "host.name": "from-config", "process.executable.name": "app"}
		maps.Copy(want, test.resource)
		resourceProfiles := next.only().ResourceProfiles().At(0)
		assert.Equal(t, want, resourceProfiles.Resource().Attributes().AsRaw(), name)
		scope := resourceProfiles.ScopeProfiles().At(0).Scope()
		assert.Equal(t, "github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver 1.2.3", scope.Name()+" "+scope.Version())
		want = map[string]any{attrkey.ProfileType: "cpu", "pprof.scope.sample_type_order": scope.Attributes().AsRaw()["pprof.scope.sample_type_order"]}
		maps.Copy(want, test.scope)
		assert.Equal(t, want, scope.Attributes().AsRaw(), name)
		assert.Equal(t, test.skipped, b.counts("otelcol_receiver_pprof_skipped_attachments", "attachment"), name)
		assert.Equal(t, map[string]int64{"pprof/test": 2}, b.counts("otelcol_receiver_accepted_profile_samples", "receiver"), name)
	}
}

// Each protocol has its own words for the type and the temporality of a profile. The time of the request is that of its profiles.
func TestTypesAndTimesOfPushedProfiles(t *testing.T) {
	const start, end = 1_700_000_000_000_000_000, 1_700_000_060_500_000_000
	type way = func(b *testReceiver, profile []byte) answer
	datadog := func(file string) way {
		return func(b *testReceiver, profile []byte) answer {
			return b.sendForm(httpserver.DatadogPath, attached(file, profile), event(goEvent))
		}
	}
	ingest := func(aggregation, config string) way {
		return func(b *testReceiver, profile []byte) answer {
			parts := []formPart{part("profile", "p", profile)}
			if config != "" {
				parts = append(parts, part("sample_type_config", "c.json", []byte(config)))
			}
			return b.sendForm("/ingest?name=app&from=1700000000&until=1700000060500&aggregationType="+aggregation, parts...)
		}
	}
	connect := func(labels ...string) way {
		return func(b *testReceiver, profile []byte) answer {
			return b.connect(profiletest.PushRequest(profiletest.RawSeries(profile, labels...)))
		}
	}
	for i, row := range []struct {
		send              way
		types, want, kind string // sample types; temporality of each with its display name; profile types, one for all or each; "-" is none
	}{
		{func(b *testReceiver, profile []byte) answer { return b.push("?profile_type=cpu", profile) }, "samples cpu", "- -", "cpu"},
		{datadog("delta-heap.pprof"), "alloc_space inuse_space", "delta instant", "heap"},
		{datadog("heap.pprof"), "alloc_space inuse_space", "cumulative instant", "heap"},
		{datadog("delta-mutex.pprof"), "contentions delay", "delta delta", "mutex"},
		{datadog("mutex.pprof"), "contentions", "cumulative", "mutex"},
		{datadog("goroutines.pprof"), "goroutine", "instant", "goroutine"},
		{datadog("cpu.pprof"), "samples", "delta", "cpu"},
		{datadog("wall.pprof"), "sample", "delta", "wall"},
		{datadog("wall.pprof"), "sample wall cpu", "delta delta delta", "wall wall cpu"}, // of Node.js
		{datadog("space.pprof"), "objects space", "instant instant", "heap"},
		{datadog("delta-custom.pprof"), "things", "delta", "custom"},
		{datadog("custom.pprof"), "things", "-", "custom"},
		{datadog("auto.pprof"), "cpu-time heap-live-size", "- instant", "cpu heap"},
		{datadog("auto.pprof"), "cpu inuse-objects inuse-space", "- instant instant", "cpu heap heap"},
		{datadog("heap.pprof"), "alloc-size inuse-space", "- instant", "heap"},
		{connect("__name__", "memory"), "alloc_space inuse_space", "cumulative instant", "heap"},
		{connect("__name__", "memory", "__delta__", "false"), "alloc_space inuse_space", "delta instant", "heap"},
		{connect("__name__", "memory", "spy_name", "dotnetspy"), "alloc_objects inuse_space", "delta instant", "heap"},
		{connect("__name__", "mutex", "pyroscope_spy", "dotnetspy"), "contentions delay", "delta delta", "mutex"},
		{connect("__name__", "goroutines"), "goroutine", "instant", "goroutine"},
		{connect("__name__", "block", "__delta__", "false"), "contentions delay", "delta delta", "block"},
		{connect("__name__", "custom"), "things", "-", "custom"},
		{ingest("", `{"alloc_space":{"units":"bytes"},"inuse_space":{"units":"bytes","aggregation":"average"}}`), "alloc_space inuse_space", "delta instant", "heap"},
		{ingest("", `{"contentions":{"display-name":"mutex_count"},"delay":{"display-name":"mutex_duration"}}`), "contentions delay", "delta,mutex_count delta,mutex_duration", "mutex"},
		{ingest("", `{"contentions":{"display-name":"block_count","cumulative":true},"delay":{"cumulative":true}}`), "contentions delay", "cumulative,block_count cumulative", "block"},
		{ingest("average", `{"goroutine":{"display-name":"goroutines","aggregation":"average"}}`), "goroutine", "instant,goroutines", "goroutine"},
		{ingest("sum", ""), "goroutineleak", "instant", "goroutineleak"},
		{ingest("sum", ""), "samples cpu", "delta delta", "cpu"},
		{ingest("sum", ""), "objects space", "instant instant", "heap"}, // of Node.js
		{ingest("", ""), "sample wall", "delta delta", "wall"},
		{ingest("", ""), "samples time", "delta delta", ""}, // of fgprof
		{ingest("", ""), "alloc_space contentions", "- -", "heap -"},
		{ingest("", ""), "samples wall cpu", "delta delta delta", "wall wall cpu"}, // of Node.js
		{ingest("&spyName=dotnetspy", `{"lock_count":{"display-name":"mutex_count"},"lock_time":{"display-name":"mutex_duration"}}`),
			"cpu alloc_samples alloc_size lock_count lock_time", "delta delta delta delta,mutex_count delta,mutex_duration", "cpu heap heap mutex mutex"},
		{ingest("average", ""), "load", "instant", ""},
		{ingest("", ""), "things", "-", ""},
		{ingest("", `{"other":{"cumulative":true}}`), "things", "-", ""},
	} {
		p := profiletest.CPUPprof("/bin/app", 1)
		p.TimeNanos, p.DurationNanos, p.SampleType, p.Sample[0].Value = 0, 0, nil, nil
		for name := range strings.FieldsSeq(row.types) {
			p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: "count"})
			p.Sample[0].Value = append(p.Sample[0].Value, int64(len(p.SampleType)))
		}
		all := arrivals(t, passedOn(t, "", func(b *testReceiver) answer { return row.send(b, profiletest.Pprof(t, p)) }))
		want := strings.Fields(row.want)
		require.Len(t, all, len(want), "row %d", i)
		for _, v := range all {
			kinds := strings.Fields(row.kind)
			if len(kinds) < 2 {
				kinds = slices.Repeat([]string{cmp.Or(row.kind, "-")}, len(want))
			}
			assert.Equal(t, kinds[v.value-1], cmp.Or(v.kind, "-"), "row %d: %s", i, v.sampleType)
			assert.Equal(t, "count", v.unit, "row %d: the unit is that of the values", i)
			assert.Equal(t, want[v.value-1], strings.TrimSuffix(cmp.Or(v.temporality, "-")+","+v.display, ","), "row %d: %s", i, v.sampleType)
			if v.time > end { // the request states none
				continue
			}
			assert.EqualValues(t, start, v.time, "row %d: %s", i, v.sampleType)
			wantDuration := 0
			if strings.Contains(row.want, "delta") { // sample types of a pprof share their times
				wantDuration = end - start
			}
			assert.EqualValues(t, wantDuration, v.duration, "row %d: %s", i, v.sampleType)
		}
	}
}

// Clients round from and until to seconds, so that both are equal for a short time.
func TestTimesWithinASecondAreDeltas(t *testing.T) {
	const path = "/ingest?format=pprof&name=app&spyName=nodespy&from=1700000000&until=1700000000"
	p := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
	all := arrivals(t, passedOn(t, "", func(b *testReceiver) answer { return b.post(path, p) }))
	require.NotEmpty(t, all)
	for _, v := range all {
		assert.Equal(t, "delta", v.temporality, v.sampleType)
	}
}

// A profile with a duration and without the heap in use has the allocations of that time, as the client for .NET sends
// them. Go's heap profiles have both, and allocations since the start of the process.
func TestAllocationsOfATimeAreDeltas(t *testing.T) {
	for _, row := range []struct {
		types, want string
		duration    int64
	}{
		{"alloc_objects alloc_space", "delta delta", 60e9},
		{"alloc_objects alloc_space", "cumulative cumulative", 0},
		{"alloc_space inuse_space", "cumulative instant", 60e9},
	} {
		p := profiletest.CPUPprof("/bin/app", 1)
		p.DurationNanos, p.SampleType, p.Sample[0].Value = row.duration, nil, nil
		for name := range strings.FieldsSeq(row.types) {
			p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: "count"})
			p.Sample[0].Value = append(p.Sample[0].Value, int64(len(p.SampleType)))
		}
		all := arrivals(t, passedOn(t, "", func(b *testReceiver) answer {
			return b.connect(profiletest.PushRequest(profiletest.RawSeries(profiletest.Pprof(t, p), "__name__", "memory")))
		}))
		for _, v := range all {
			assert.Equal(t, strings.Fields(row.want)[v.value-1], v.temporality, "%s for %d", row.types, row.duration)
			assert.EqualValues(t, row.duration, v.duration)
		}
	}
}

// A pprof of several profile types has a scope for each, from which the pprof can be made again.
func TestScopesOfSeveralProfileTypesHoldOnePprof(t *testing.T) {
	p := profiletest.CPUPprof("/bin/app", 1)
	p.SampleType = []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}, {Type: "alloc_size", Unit: "bytes"}, {Type: "exception", Unit: "count"}, {Type: "lock_time", Unit: "nanoseconds"}, {Type: "alloc_samples", Unit: "count"}}
	p.Sample[0].Value = []int64{1, 2, 3, 4, 5}
	pd := pushed(t, "", "?service.name=net", p)
	got := map[string]string{}
	ids := map[pprofile.ProfileID]bool{}
	scopes := pd.ResourceProfiles().At(0).ScopeProfiles()
	for _, scope := range scopes.All() {
		kind, _ := scope.Scope().Attributes().AsRaw()[attrkey.ProfileType].(string)
		for _, v := range scope.Profiles().All() {
			got[kind] += " " + pd.Dictionary().StringTable().At(int(v.SampleType().TypeStrindex()))
			ids[v.ProfileID()] = true
		}
		assert.NotEmpty(t, scope.Scope().Name())
	}
	assert.Equal(t, map[string]string{"cpu": " cpu", "heap": " alloc_samples alloc_size", "mutex": " lock_time", "": " exception"}, got)
	assert.Len(t, ids, 5)
	back := pprofsOf(t, pd)
	assert.Equal(t, profiletest.Sums(p), profiletest.Sums(back...))
}

// Old clients for .NET send functions without IDs, in the order of their locations.
func TestFunctionsWithoutIDsAreThoseOfTheirLocations(t *testing.T) {
	field := func(to []byte, number protowire.Number, content ...byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), content)
	}
	var body []byte
	body = field(body, 1, 0x08, 4, 0x10, 5)       // sample type
	body = field(body, 2, 0x0a, 2, 2, 1, 0x10, 7) // sample: locations 2 and 1, value 7
	for id := range byte(2) {
		body = field(body, 4, 0x08, id+1, 0x22, 2, 0x10, 9+id) // location: line without a function_id
		body = field(body, 5, 0x10, id+2)                      // function: name
	}
	for _, text := range []string{"", "unused", "main", "leaf", "cpu", "nanoseconds"} {
		body = field(body, 6, []byte(text)...)
	}
	push := func(spy string) func(b *testReceiver) answer {
		return func(b *testReceiver) answer { return b.post("/ingest?format=pprof&name=net&spyName="+spy, body) }
	}
	other := startTestReceiver(t, serverYAML, consumertest.NewNop())
	got := push("gospy")(other)
	assert.Equal(t, 400, got.status)
	assert.Contains(t, got.body, "id 0 is reserved")
	back := pprofsOf(t, passedOn(t, "", push("dotnetspy")))
	require.Len(t, back, 1)
	assert.Equal(t, []string{"main", "leaf"}, profiletest.StackOf(back[0].Sample[0]))
	assert.EqualValues(t, 7, back[0].Sample[0].Value[0])
}

func TestServiceName(t *testing.T) {
	for _, row := range []struct {
		name, config, query, binary, want string
	}{
		{name: "query over config", config: "resource_attributes: {service.name: configured}", query: "?service.name=asked", want: "asked"},
		{name: "config", config: "resource_attributes: {service.name: configured}", binary: "/bin/app", want: "configured"},
		{name: "executable", binary: "/usr/bin/app", want: "unknown_service:app"},
		{name: "executable of the query", query: "?process.executable.name=other", binary: "/usr/bin/app", want: "unknown_service:other"},
		{name: "empty", query: "?service.name=", binary: "/bin/app", want: "unknown_service:app"},
		{name: "nothing", want: "unknown_service"},
	} {
		t.Run(row.name, func(t *testing.T) {
			pd := pushed(t, row.config, row.query, profiletest.CPUPprof(row.binary, 1))
			name, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
			assert.Equal(t, row.want, name.AsString())
		})
	}
}

// A pprof without samples covers its time. One without sample types has no Profile.
func TestProfileWithoutSamplesIsKept_R5(t *testing.T) {
	p := profiletest.CPUPprof("/bin/app", 1)
	p.Sample = nil
	next := &sink{t: t}
	b := startTestReceiver(t, serverYAML, next)
	require.Equal(t, 204, b.push("", profiletest.Pprof(t, &profile.Profile{TimeNanos: 1})).status)
	assert.Empty(t, next.AllProfiles(), "nothing is passed on")
	require.Equal(t, 204, b.push("", profiletest.Pprof(t, p)).status)
	require.Len(t, next.AllProfiles(), 1)
	count := 0
	for got := range sampletypes.ProfilesOf(next.AllProfiles()[0]) {
		assert.Zero(t, got.Samples().Len())
		assert.EqualValues(t, p.TimeNanos, got.Time())
		assert.EqualValues(t, p.DurationNanos, got.DurationNano())
		count++
	}
	assert.Equal(t, len(p.SampleType), count)
	profiletest.Injected(t, "1 profiles without samples")
}

// The configured labels become links. So do those of known libraries, which remain attributes. An invalid pair becomes none.
func TestLinksOfLabels(t *testing.T) {
	const trace, span = "0102030405060708090a0b0c0d0e0f10", "0102030405060708"
	for _, row := range []struct {
		name    string
		labels  map[string][]string
		numbers map[string][]int64
		config  string // its labels are removed
		link    string // "" is none
	}{
		{name: "configured", config: "links: {trace_id: the trace, span_id: the span}\ntimestamp_label: at", labels: map[string][]string{"the trace": {trace}, "the span": {span}}, numbers: map[string][]int64{"at": {1_700_000_000_000_000_005}}, link: trace + "/" + span},
		{name: "OpenTelemetry", labels: map[string][]string{"otel_traceid": {trace}, "otel_spanid": {span}}, link: trace + "/" + span},
		{name: "dotted", labels: map[string][]string{"otel.traceid": {trace}, "otel.spanid": {span}}, link: trace + "/" + span},
		{name: "Datadog", labels: map[string][]string{"trace id": {trace}, "span id": {"72623859790382856"}}, link: trace + "/" + span},
		{name: "Datadog, numbers", labels: map[string][]string{"trace id": {trace}}, numbers: map[string][]int64{"span id": {0x0102030405060708}, "local root span id": {9}}, link: trace + "/" + span},
		{name: "Datadog, only the root", labels: map[string][]string{"trace id": {trace}}, numbers: map[string][]int64{"local root span id": {9}}, link: trace + "/0000000000000009"},
		{name: "Pyroscope", labels: map[string][]string{"trace_id": {trace}, "profile_id": {span}}, link: trace + "/" + span},
		{name: "a span alone", labels: map[string][]string{"profile_id": {span}}},
		{name: "upper case", labels: map[string][]string{"otel_traceid": {strings.ToUpper(trace)}, "otel_spanid": {span}}},
		{name: "short", labels: map[string][]string{"otel_traceid": {trace[1:]}, "otel_spanid": {span}}},
		{name: "zeros", labels: map[string][]string{"otel_traceid": {strings.Repeat("0", 32)}, "otel_spanid": {span}}},
		{name: "no number", labels: map[string][]string{"trace id": {trace}, "span id": {"7x"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := profiletest.CPUPprof("/bin/app", 1)
			p.Sample[0].Label, p.Sample[0].NumLabel = row.labels, row.numbers
			sample := profiletest.Expand(t, pushed(t, row.config, "", p))[0].Samples[0]
			assert.Equal(t, row.link, sample.Link)
			if row.config == "" {
				assert.Len(t, sample.Attributes, len(row.labels)+len(row.numbers), "all labels stay")
				return
			}
			assert.Empty(t, sample.Attributes)
			require.Len(t, sample.Points, 1)
			assert.EqualValues(t, row.numbers["at"][0], sample.Points[0].Timestamp)
		})
	}
}

// idsOf are the profile IDs of all payloads that were consumed, each with its count.
func (s *sink) idsOf() map[pprofile.ProfileID]int {
	s.t.Helper()
	ids := map[pprofile.ProfileID]int{}
	for _, pd := range s.AllProfiles() {
		for p := range sampletypes.ProfilesOf(pd) {
			require.False(s.t, p.ProfileID().IsEmpty())
			ids[p.ProfileID()]++
		}
	}
	return ids
}

// curlData is a body as curl -d @FILE sends it.
func curlData(file []byte) []byte {
	for _, removed := range []string{"\r", "\n", "\x00"} {
		file = bytes.ReplaceAll(file, []byte(removed), nil)
	}
	return file
}

// Attributes of a request are bounded in length, not only in number: a small compressed request must
// not become a large attribute.
func TestAttributeLengthsAreBounded_R8(t *testing.T) {
	within, over := strings.Repeat("x", httpserver.MaxAttributeLength), strings.Repeat("x", httpserver.MaxAttributeLength+1)
	body := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
	b := startTestReceiver(t, serverYAML, consumertest.NewNop())
	for by, send := range map[string]func(name, value string) answer{
		"query": func(name, value string) answer { return b.push("?"+url.Values{name: {value}}.Encode(), body) },
		"labels": func(name, value string) answer {
			return b.post(httpserver.IngestPath+"?format=pprof&name=app"+url.QueryEscape("{"+name+"="+value+"}"), body)
		},
		"tags": func(name, value string) answer {
			return b.sendForm(httpserver.DatadogPath, attached("cpu.pprof", body), event(`{"tags_profiler":"`+name+":"+value+`"}`))
		},
	} {
		assert.Less(t, send("a.b", within).status, 300, by)
		for _, got := range []answer{send("a.b", over), send("a."+over, "b")} {
			assert.Equal(t, http.StatusRequestEntityTooLarge, got.status, by)
			assert.Contains(t, got.body, "more than the limit of 65536", by)
			assert.NotContains(t, got.body, over, by)
		}
		profiletest.Injected(t, "1 attributes at the limit, 2 attributes over it")
	}
	assert.Equal(t, 413, b.sendForm(httpserver.DatadogPath, attached("cpu.pprof", body), event(`{"family":"`+over+`"}`)).status)
	assert.Equal(t, 413, b.push("?profile_type="+over, body).status)
	assert.Zero(t, b.inFlight.InUse())
}

// An attribute that a request states once counts for each profile that gets it.
func TestAttributesCountForEachProfile_R8(t *testing.T) {
	raw := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3))
	long := strings.Repeat("x", httpserver.MaxAttributeLength)
	b := startTestReceiver(t, serverYAML, consumertest.NewNop())
	push := func(samples int, series ...[]byte) answer {
		for range samples - 1 {
			series[0] = profiletest.AppendRawSample(series[0], profiletest.RawSample(raw))
		}
		return b.connect(profiletest.Gzip(t, profiletest.PushRequest(series...)), "Content-Encoding", "gzip")
	}
	var labels []string
	for i := range httpserver.MaxEntries {
		labels = append(labels, fmt.Sprint("a", i), long)
	}
	assert.Equal(t, 200, push(256, profiletest.RawSeries(raw, "service_name", long[:32<<10])).status)
	assert.Equal(t, 200, push(1, profiletest.RawSeries(raw, "a", long[1:], "b", long[1:])).status)
	for _, got := range []answer{
		push(256, profiletest.RawSeries(raw, "service_name", long)),
		push(1, profiletest.RawSeries(raw, labels...), profiletest.RawSeries(raw, labels...)),
	} {
		assert.Equal(t, 400, got.status)
		assert.Contains(t, got.body, "size in bytes of the attributes of all profiles")
	}
	assert.Zero(t, b.inFlight.InUse())
	profiletest.Injected(t, "4 requests of long labels for many profiles")
}

// The memory of rejected profiles is bounded as that of accepted ones, and released. Valid profiles
// before them are accepted.
func TestBombsOfOneRequestShareTheLimit_R2(t *testing.T) {
	for name, bomb := range bombs(t) {
		next := &sink{t: t}
		b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 4MiB}\nmax_in_flight: 64MiB", next)
		good := profiletest.Gzip(t, profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3)))
		parts := []formPart{event("{}"), attached("cpu.pprof", good)}
		many := min(100, 3<<20/len(bomb)) // within the limit of a body
		for i := range many {
			parts = append(parts, attached(fmt.Sprintf("%d.pprof", i), bomb))
		}
		allocated := profiletest.AllocatedBy(func() {
			assert.Equal(t, 413, b.sendForm(httpserver.DatadogPath, parts...).status, name)
		})
		// Twice the limit, each with its first attempts, other memory and, of lz4, blocks of
		// 8 MiB; and the form, which is read as it grows.
		assert.Less(t, allocated, uint64(120<<20)+8*uint64(many*len(bomb)), name)
		assert.Len(t, next.AllProfiles(), 1, name)
		assert.Equal(t, map[string]int64{"limit": int64(many)}, b.counts("otelcol_receiver_pprof_rejected_requests", "reason"), name)
		assert.Zero(t, b.inFlight.InUse(), name)
		profiletest.Account(t, fmt.Sprintf("%d bombs with a good profile", many), 1, len(next.AllProfiles()), 0)
	}
}

// A message does not quote the long names of many parts.
func TestMessagesAreShortDespiteLongNames_R3(t *testing.T) {
	b := startTestReceiver(t, serverYAML, consumertest.NewNop())
	for _, character := range []string{"\xff", "\x01"} { // that can be quoted, and that is rejected
		all := []formPart{event("{}")}
		for range 200 {
			all = append(all, attached(strings.Repeat(character, 15<<10)+".pprof", []byte("no")))
		}
		got := b.sendForm(httpserver.DatadogPath, all...)
		assert.Equal(t, http.StatusBadRequest, got.status)
		assert.Less(t, len(got.body), 4<<10)
	}
	assert.Zero(t, b.inFlight.InUse())
	profiletest.Injected(t, "400 parts with long names")
}

func (b *testReceiver) connect(body []byte, headers ...string) answer {
	b.t.Helper()
	return b.post(httpserver.PushPath, body, append([]string{"Content-Type", "application/proto"}, headers...)...)
}

// Errors have Connect's codes and form.
func TestConnectCodes_R10(t *testing.T) {
	good := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3))
	request := profiletest.PushRequest(profiletest.RawSeries(good, "service_name", "checkout"))
	zeros := make([]byte, 3<<20)
	testExchanges(t, exchange{path: httpserver.PushPath, contentType: "application/proto"}, []exchange{
		{name: "good", body: request, status: 200},
		{name: "good, with the version", body: request, headers: []string{"Connect-Protocol-Version", "1", "Connect-Timeout-Ms", "1000"}, status: 200},
		{name: "gzipped", body: profiletest.Gzip(t, request), headers: []string{"Content-Encoding", "gzip"}, status: 200},
		{name: "JSON with the names of the definition", contentType: "application/json", status: 200,
			body: []byte(`{"series":[{"samples":[{"raw_profile":"` + base64.StdEncoding.EncodeToString(good) + `"}]}]}`)},
		{name: "no series", body: []byte{0x1a, 0x00}, status: 200},
		{name: "unknown fields", body: append(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1), request...), status: 200},

		{name: "empty", status: 400, says: "empty"},
		{name: "cut off", body: request[:len(request)-1], status: 400, says: "ends inside a field"},
		{name: "not gzip as said", body: request, headers: []string{"Content-Encoding", "gzip"}, status: 400, says: "not gzip"},
		{name: "a profile as the body", body: good, status: 400, says: "body: series[0]: not a PushRequest: field 1 has the wire type 0: must be 2"},
		{name: "a number of series", body: []byte{0x08, 0x01}, status: 400, says: "body: not a PushRequest: field 1 has the wire type 0: must be 2"},
		{name: "no profile in it", body: profiletest.PushRequest(profiletest.RawSeries(nil)), status: 400, says: "series[0].samples[0]: empty"},
		{name: "a label twice", body: profiletest.PushRequest(profiletest.RawSeries(good, "a", "1", "a", "2")), status: 400, says: `series[0].labels: duplicate "a"`},
		{name: "JSON cut off", contentType: "application/json", body: []byte(`{"series":[`), status: 400, says: "JSON"},
		{name: "JSON with a number", contentType: "application/json", body: []byte(`{"series":7}`), status: 400, says: `JSON: wrong type at byte 11, of field "series"`},
		{name: "JSON with bad base64", contentType: "application/json", body: []byte(`{"series":[{},{"samples":[{"rawProfile":"AA!="}]}]}`), status: 400, says: "not a PushRequest in JSON: illegal base64 data at input byte 2"},
		{name: "JSON with a long label", contentType: "application/json", body: []byte(`{"series":[{"labels":[{"name":"` + strings.Repeat("a", 500_000) + `"}]}]}`), status: 400, says: "size in bytes of a name: 500000"},
		{name: "another version", body: request, headers: []string{"Connect-Protocol-Version", "2"}, status: 400, says: "must be 1"},
		{name: "half a JFR", body: profiletest.PushRequest(profiletest.RawSeries([]byte("FLR\x00abc"))), status: 400, says: "jfr: chunk 1, byte 0"},
		{name: "Content-Encoding br", body: request, headers: []string{"Content-Encoding", "br"}, status: 501, says: "br"},

		{name: "gzipped, too large", body: profiletest.Gzip(t, zeros), headers: []string{"Content-Encoding", "gzip"}, status: 400, says: "limit"},
		{name: "a bomb in it", body: profiletest.PushRequest(profiletest.RawSeries(profiletest.Gzip(t, zeros))), status: 400, says: "series[0].samples[0]"},
		{name: "many series", body: bytes.Repeat([]byte{0x0a, 0x00}, httpserver.MaxEntries+1), status: 400, says: "series: 257, more than the limit of 256"},
		{name: "many samples", body: profiletest.PushRequest(bytes.Repeat([]byte{0x12, 0x00}, httpserver.MaxEntries+1)), status: 400, says: "samples: 257, more than"},
		{name: "many labels", body: profiletest.PushRequest(bytes.Repeat([]byte{0x0a, 0x00}, httpserver.MaxEntries+1)), status: 400, says: "labels: 257"},
		{name: "JSON of many series", contentType: "application/json", body: []byte(`{"series":[` + strings.Repeat("{},", httpserver.MaxEntries) + `{}]}`), status: 400, says: "series"},
		{name: "JSON of many nothings", contentType: "application/json", body: []byte(`{"series":[` + strings.Repeat("null,", 64<<10) + `{}]}`), status: 400, says: "commas"},

		{name: "retryable", body: request, next: consumertest.NewErr(errors.New("is away")), status: 503, says: "is away"},

		{name: "GET", method: http.MethodGet, status: 405},
		{name: "gRPC", contentType: "application/grpc", body: request, status: 415, says: "application/proto"},
		{name: "no content type", contentType: " ", body: request, status: 415},
	})
}

// TestCurlWithoutBinaryGetsAHint: curl -d @file removes CR and LF from a profile, and states the type of a form.
func TestCurlWithoutBinaryGetsAHint(t *testing.T) {
	const hint, form = "use --data-binary @FILE", "application/x-www-form-urlencoded"
	b := startTestReceiver(t, "server: {}", &sink{t: t})
	whole := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 10))
	require.True(t, bytes.ContainsAny(whole, "\r\n"))
	stripped := bytes.ReplaceAll(bytes.ReplaceAll(whole, []byte("\r"), nil), []byte("\n"), nil)
	for _, path := range []string{"/v1/pprof", "/ingest?name=a&format=pprof"} {
		got := b.post(path, stripped, "Content-Type", form)
		assert.Equal(t, http.StatusBadRequest, got.status, path)
		assert.Contains(t, got.body, hint, path)
		assert.NotContains(t, b.post(path, stripped).body, hint, path)
		accepted := b.post(path, whole, "Content-Type", form)
		assert.Less(t, accepted.status, 300, "%s: %s", path, accepted.body)
	}
	const folded = "/ingest?name=a&format=folded"
	joined := b.post(folded, []byte("main;a 3main;b 4main;c 10"), "Content-Type", form)
	assert.Equal(t, http.StatusBadRequest, joined.status, "stacks of several lines are no frames")
	assert.Contains(t, joined.body, hint)
	assert.Less(t, b.post(folded, []byte("main;a 3"), "Content-Type", form).status, 300)
	perf := b.post("/v1/pprof", []byte("PERFILE2\nmain\n"), "Content-Type", form)
	assert.Equal(t, http.StatusBadRequest, perf.status)
	assert.Contains(t, perf.body, "looks like the data of perf record")
	assert.NotContains(t, perf.body, hint, "a body with line breaks is complete")
}
