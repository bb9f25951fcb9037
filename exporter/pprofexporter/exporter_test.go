// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/pprofexporter/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/pprofservertest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

var protocols = []string{protocolPyroscope, protocolParca, protocolHTTP}

// withoutQueue is YAML that makes callers wait for one attempt.
const withoutQueue = "\nsending_queue: null\nretry_on_failure: {enabled: false}\n"

// running is an exporter with its telemetry and log.
type running struct {
	xexporter.Profiles
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

// start starts an exporter, which ends with the test.
func start(t *testing.T, yaml string) *running {
	t.Helper()
	config := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig(yaml, config))
	r := &running{}
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings, r.telemetry, r.logs = profiletest.Observe(t)
	e, err := NewFactory().(xexporter.Factory).CreateProfiles(t.Context(), set, config)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	r.Profiles = e
	return r
}

// rejected returns the metric of rejected profiles, by reason.
func (r *running) rejected(t *testing.T) map[string]int64 {
	return profiletest.MetricsBy(t, r.telemetry, "otelcol_exporter_pprof_", "reason")["rejected_series"]
}

// payload makes a payload of a pprof as the pprof receiver does.
func payload(t *testing.T, p *profile.Profile, profileType string, resource ...string) pprofile.Profiles {
	t.Helper()
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, p))
	require.NoError(t, err)
	payloadtest.With(pd, resource...)
	if profileType != "" {
		pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutStr(attrkey.ProfileType, profileType)
	}
	return pd
}

// addAttribute adds an attribute to the first Profile.
func addAttribute(pd pprofile.Profiles, key, value string) {
	dict := pd.Dictionary()
	pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).AttributeIndices().Append(int32(dict.AttributeTable().Len()))
	a := dict.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(int32(dict.StringTable().Len()))
	a.Value().SetStr(value)
	dict.StringTable().Append(key)
}

// together appends the resources of payloads to one.
func together(t *testing.T, all ...pprofile.Profiles) pprofile.Profiles {
	t.Helper()
	to := pprofile.NewProfiles()
	for _, pd := range all {
		require.NoError(t, pd.MergeTo(to))
	}
	return to
}

// simple returns a pprof with one sample of each sample type, "type/unit".
func simple(period string, types ...string) *profile.Profile {
	p := profiletest.HeapPprof(0, 0, 0, 0)
	p.SampleType, p.DefaultSampleType, p.Period, p.PeriodType = nil, "", 0, &profile.ValueType{}
	p.DurationNanos = int64(10 * time.Second)
	p.Sample[0].Value = nil
	for i, t := range types {
		name, unit, _ := strings.Cut(t, "/")
		p.SampleType = append(p.SampleType, &profile.ValueType{Type: name, Unit: unit})
		p.Sample[0].Value = append(p.Sample[0].Value, int64(i+1))
	}
	if name, unit, found := strings.Cut(period, "/"); found {
		p.PeriodType, p.Period = &profile.ValueType{Type: name, Unit: unit}, 100
	}
	return p
}

// The type IDs are those of the dashboards for Pyroscope and Parca.
func TestSeriesAreNamedAsByTheClientsOfTheServers(t *testing.T) {
	heap := profiletest.HeapPprof(1, 2, 3, 4)
	for _, test := range []struct {
		name, profileType string
		pprof             *profile.Profile
		delta             string
		want              []string // with the name of Parca in parentheses, if it is another
	}{
		{"cpu", "", simple("cpu/nanoseconds", "samples/count", "cpu/nanoseconds"), "false", []string{"process_cpu:samples:count:cpu:nanoseconds", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"}},
		{"ebpf", "", simple("cpu/nanoseconds", "samples/count"), "false", []string{"process_cpu:samples:count:cpu:nanoseconds"}},
		{"heap", "", heap, "", []string{"memory:alloc_objects:count:space:bytes", "memory:alloc_space:bytes:space:bytes", "memory:inuse_objects:count:space:bytes", "memory:inuse_space:bytes:space:bytes"}},
		{"allocs", "allocs", simple("space/bytes", "alloc_space/bytes"), "false", []string{"memory:alloc_space:bytes:space:bytes"}},
		{"mutex", "mutex", simple("contentions/count", "contentions/count", "delay/nanoseconds"), "false", []string{"mutex:contentions:count:contentions:count", "mutex:delay:nanoseconds:contentions:count"}},
		{"block", "block", simple("contentions/count", "delay/nanoseconds"), "false", []string{"block:delay:nanoseconds:contentions:count"}},
		{"goroutine", "", simple("goroutine/count", "goroutine/count"), "false", []string{"goroutine(s):goroutine:count:goroutine:count"}},
		{"wall", "", simple("", "samples/count", "wall/nanoseconds"), "false", []string{"wall:samples:count:wall:nanoseconds", "wall:wall:nanoseconds:wall:nanoseconds"}},
		{"without a period type", "", simple("", "samples/count", "time/nanoseconds"), "false", []string{"time:samples:count:time:nanoseconds", "time:time:nanoseconds:time:nanoseconds"}},
		{"other", "lock.contended", simple("", "lock-s/count"), "false", []string{"lock_contended:lock-s:count:lock-s:count"}},
		{"digit", "1st", simple("", "n/count"), "false", []string{"_1st:n:count:n:count"}},
	} {
		for _, protocol := range protocols[:2] {
			t.Run(test.name+" "+protocol, func(t *testing.T) {
				s := pprofservertest.Start(t, nil)
				e := start(t, "endpoint: "+s.URL+"\nprotocol: "+protocol+withoutQueue)
				pd := payload(t, test.pprof, test.profileType, "service.name", "checkout", "k8s.pod.name", "pod-1", "other", "x")
				before := pprofile.NewProfiles()
				pd.CopyTo(before)
				require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
				assert.Equal(t, before, pd, "the payload is only read")
				got := s.Took(1)[0]
				names := strings.NewReplacer("(s)", "s", "-", "_")
				labels := map[string]string{"__name__": got.Labels["__name__"], "service_name": "checkout", "pod": "pod-1"}
				if protocol == protocolParca {
					names = strings.NewReplacer("(s)", "")
				} else if test.delta != "" {
					labels["__delta__"] = test.delta
				}
				want := slices.Clone(test.want)
				for i := range want {
					want[i] = names.Replace(want[i])
				}
				assert.Equal(t, want, got.Types())
				assert.Equal(t, labels, got.Labels)
				assert.Positive(t, got.Pprof.Period)
				assert.Len(t, pprofservertest.Sums(got), len(test.pprof.SampleType))
			})
		}
	}
}

// Profiles of profiles_dedup have the snapshots in a scope of their own, and list the sample types that have no Profile there.
func TestHeapIsAHandfulOfSeries(t *testing.T) {
	p := profiletest.HeapPprof(1, 2, 3, 4)
	for i := range 5 {
		sample := *p.Sample[0]
		sample.NumLabel, sample.NumUnit = map[string][]int64{"bytes": {int64(i + 8)}}, map[string][]string{"bytes": {"bytes"}}
		sample.Label = map[string][]string{"tag": {string(rune('a' + i))}}
		p.Sample = append(p.Sample, &sample)
	}
	pd := payload(t, p, "heap")
	scopes := pd.ResourceProfiles().At(0).ScopeProfiles()
	scopes.At(0).CopyTo(scopes.AppendEmpty())
	all := []sampletypes.Type{{Type: "alloc_objects", Unit: "count"}, {Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}
	for i, order := range [][]int{{0, 1}, {3, 2}} { // the default type comes first
		scopes.At(i).Profiles().RemoveIf(func(p pprofile.Profile) bool {
			name := pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
			return name != all[order[0]].Type && name != all[order[1]].Type
		})
		sampletypes.Write(scopes.At(i).Scope().Attributes(), all, order)
		for _, p := range scopes.At(i).Profiles().All() {
			p.SetDurationNano(uint64(i) * 1000)
		}
	}
	s := pprofservertest.Start(t, nil)
	require.NoError(t, start(t, "endpoint: "+s.URL+withoutQueue).ConsumeProfiles(t.Context(), pd))
	got := s.Took(2)
	assert.Equal(t, []string{"memory:alloc_objects:count:space:bytes", "memory:alloc_space:bytes:space:bytes"}, got[0].Types())
	assert.Equal(t, []string{"memory:inuse_objects:count:space:bytes", "memory:inuse_space:bytes:space:bytes"}, got[1].Types())
	assert.Equal(t, profiletest.Sums(p), pprofservertest.Sums(got...))
	for _, r := range got {
		require.Len(t, r.Pprof.Sample, 1, "samples without labels are summed")
		assert.Empty(t, r.Pprof.Sample[0].Label)
		assert.Empty(t, r.Pprof.Sample[0].NumLabel)
	}
}

func TestTemporalityTellsPyroscopeWhatToSubtract(t *testing.T) {
	for _, test := range []struct{ profileType, temporality, want string }{
		{"heap", sampletypes.Cumulative, ""},
		{"heap", sampletypes.Delta, "false"},
		{"mutex", sampletypes.Cumulative, "true"},
		{"mutex", sampletypes.Delta, "false"},
		{"mutex", "", "false"},
	} {
		pd := payload(t, simple("", "alloc_space/bytes"), test.profileType)
		if test.temporality != "" {
			addAttribute(pd, attrkey.Temporality, test.temporality)
		}
		s := pprofservertest.Start(t, nil)
		require.NoError(t, start(t, "endpoint: "+s.URL+withoutQueue).ConsumeProfiles(t.Context(), pd))
		assert.Equal(t, test.want, s.Took(1)[0].Labels["__delta__"], "%v", test)
	}
}

func TestSumsAreThoseOfGooglePprof(t *testing.T) {
	for _, protocol := range protocols {
		s := pprofservertest.Start(t, nil)
		e := start(t, "endpoint: "+s.URL+"\nprotocol: "+protocol+withoutQueue)
		for seed := range uint64(profiletest.Rounds(t, 20, 2000)) {
			p := profiletest.GeneratePprof(profiletest.NewRand(seed))
			require.NoError(t, e.ConsumeProfiles(t.Context(), payload(t, p, "")), seed)
			want := map[string]int64{}
			for key, sum := range profiletest.Sums(p) {
				if protocol == protocolPyroscope {
					key = sampletypes.PyroscopeName(key)
				}
				want[key] += sum
			}
			got := s.TakeAll()
			assert.Equal(t, want, pprofservertest.Sums(got...), "%s %d", protocol, seed)
			assert.LessOrEqual(t, len(got), 2, "%d: one, or one more for samples without timestamps", seed)
		}
	}
}

func TestTimestampsOfSamplesAreSummed(t *testing.T) {
	pd := payload(t, simple("", "samples/count"), "")
	samples := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples()
	samples.At(0).CopyTo(samples.AppendEmpty())
	samples.At(0).Values().FromRaw(nil)
	samples.At(0).TimestampsUnixNano().Append(5, 6, 7)
	samples.At(1).Values().FromRaw([]int64{10, 20})
	samples.At(1).TimestampsUnixNano().Append(8, 9)
	for _, protocol := range protocols {
		s := pprofservertest.Start(t, nil)
		require.NoError(t, start(t, "endpoint: "+s.URL+"\nprotocol: "+protocol+withoutQueue).ConsumeProfiles(t.Context(), pd))
		got := s.Took(1)[0]
		assert.Equal(t, map[string]int64{"samples/count": 33}, pprofservertest.Sums(got))
		assert.Len(t, got.Pprof.Sample, map[string]int{protocolPyroscope: 1, protocolParca: 1, protocolHTTP: 5}[protocol])
	}
}

// threads returns a payload whose samples have labels and links.
func threads(t *testing.T) pprofile.Profiles {
	p := simple("cpu/nanoseconds", "cpu/nanoseconds")
	for i, thread := range []string{"main", "gc", "main"} {
		sample := *p.Sample[0]
		sample.Value = []int64{int64(10 * (i + 1))}
		sample.Label = map[string][]string{"thread.name": {thread}, "path": {"/" + thread}}
		if i == 2 {
			sample.Label["trace_id"] = []string{"0102030405060708090a0b0c0d0e0f10"}
			sample.Label["span_id"] = []string{"0102030405060708"}
		}
		p.Sample = append(p.Sample, &sample)
	}
	return payload(t, p, "cpu", "service.name", "checkout")
}

func TestSampleLabelsMakeSeriesAndLinksLabelsOfSpans(t *testing.T) {
	for _, protocol := range protocols {
		s := pprofservertest.Start(t, nil)
		e := start(t, "endpoint: "+s.URL+"\nsample_labels: [thread.name]\nprotocol: "+protocol+withoutQueue)
		require.NoError(t, e.ConsumeProfiles(t.Context(), threads(t)))
		byThread, spans := map[string]int64{}, []string(nil)
		for _, r := range s.Took(3) {
			thread := r.Labels["thread_name"]
			if protocol == protocolHTTP {
				thread = r.Query.Get("thread.name")
			}
			byThread[thread] = pprofservertest.Sums(r)["cpu/nanoseconds"]
			for _, sample := range r.Pprof.Sample {
				spans = append(spans, sample.Label["span_id"]...)
				assert.NotContains(t, sample.Label, "thread.name")
				assert.Equal(t, protocol != protocolPyroscope && thread != "", sample.Label["path"] != nil, protocol)
				assert.Equal(t, protocol != protocolPyroscope && sample.Label["span_id"] != nil, sample.Label["trace_id"] != nil, "Pyroscope would make a series of each trace")
			}
		}
		assert.Equal(t, map[string]int64{"": 1, "main": 40, "gc": 20}, byThread, protocol)
		assert.Equal(t, []string{"0102030405060708"}, spans, protocol)
	}
}

func TestPlainHTTPHasAttributesInTheQuery(t *testing.T) {
	s := pprofservertest.Start(t, nil)
	pd := payload(t, simple("cpu/nanoseconds", "cpu/nanoseconds"), "cpu", "service.name", "check{out}", "region", "eu", "host.name", "a,b")
	pd.ResourceProfiles().At(0).Resource().Attributes().PutInt("process.pid", 7)
	require.NoError(t, start(t, "endpoint: "+s.URL+"?key=1\nprotocol: http"+withoutQueue).ConsumeProfiles(t.Context(), pd))
	require.NoError(t, start(t, "endpoint: "+s.URL+"/ingest\nprotocol: http"+withoutQueue).ConsumeProfiles(t.Context(), pd))
	got := s.Took(2)
	want := map[string][]string{"key": {"1"}, "profile_type": {"cpu"}, "service.name": {"check{out}"}, ".region": {"eu"}, "host.name": {"a,b"}, "process.pid": {"7"}, "process.executable.name": {"app"}}
	assert.Equal(t, want, map[string][]string(got[0].Query))
	want = map[string][]string{"format": {"pprof"}, "name": {"check_out_{hostname=a_b}"}, "from": {"1700000000000000000"}, "until": {"1700000010000000000"}}
	assert.Equal(t, want, map[string][]string(got[1].Query))
}

func TestHeadersAndTLSAreThoseOfTheClient(t *testing.T) {
	for _, protocol := range protocols {
		s, authority := pprofservertest.StartTLS(t)
		e := start(t, "endpoint: "+s.URL+"\nheaders: {X-Scope-OrgID: tenant-1}\ntls: {ca_file: "+authority+"}\nprotocol: "+protocol+withoutQueue)
		require.NoError(t, e.ConsumeProfiles(t.Context(), threads(t)), protocol)
		assert.Equal(t, []string{"tenant-1"}, s.Took(1)[0].Header["X-Scope-Orgid"], protocol)
	}
}

// services returns a payload with a profile of each service.
func services(t *testing.T, names ...string) pprofile.Profiles {
	var all []pprofile.Profiles
	for _, name := range names {
		all = append(all, payload(t, simple("cpu/nanoseconds", "samples/count", "cpu/nanoseconds"), "", "service.name", name))
	}
	return together(t, all...)
}

func servicesOf(pd pprofile.Profiles) (names []string) {
	for _, rp := range pd.ResourceProfiles().All() {
		name, _ := rp.Resource().Attributes().Get("service.name")
		names = append(names, name.AsString())
	}
	return names
}

func TestOutcomeOfOneSeriesIsNotThatOfOthers(t *testing.T) {
	for _, protocol := range protocols[:2] {
		broken := map[string]pprofservertest.Answer{
			"bad":   {Status: 400, GRPC: status.New(codes.InvalidArgument, "bad labels"), Message: "bad labels"},
			"busy":  {Status: 500}, // of HTTP only
			"large": {Status: 413, GRPC: status.New(codes.ResourceExhausted, "too large")},
			"later": {Status: 503, GRPC: status.New(codes.Unavailable, "later"), Message: "later"},
		}
		busy := []string{"busy"}
		if protocol == protocolParca {
			delete(broken, "busy")
			busy = nil
		}
		s := pprofservertest.Start(t, func(r pprofservertest.Received) pprofservertest.Answer { return broken[r.Service()] })
		e := start(t, "endpoint: "+s.URL+"\nprotocol: "+protocol+withoutQueue)
		invalid := services(t, "invalid") // its first Profile has two attributes of one key
		addAttribute(invalid, "key", "a")
		addAttribute(invalid, "key", "b")
		err := e.ConsumeProfiles(t.Context(), together(t, services(t, "bad", "a", "busy", "large", "b"), invalid, services(t, "later", "c")))
		require.ErrorContains(t, err, "later")
		require.False(t, consumererror.IsPermanent(err))
		rest, partial := ingest.NotAccepted(err)
		require.True(t, partial)
		require.Equal(t, append(busy, "later", "c"), servicesOf(rest), protocol)
		rejections := map[string]int64{reasonInvalid: 1, reasonTooLarge: 1, reasonConvert: 1}
		assert.Equal(t, rejections, e.rejected(t), protocol)
		logged := e.logs.FilterMessage("Rejected a profile permanently").All()
		assert.Len(t, logged, 3)
		assert.Equal(t, "bad", logged[0].ContextMap()["service"])
		assert.Contains(t, logged[0].ContextMap()["error"], "bad labels")

		delete(broken, "busy")
		delete(broken, "later")
		require.NoError(t, e.ConsumeProfiles(t.Context(), rest))
		assert.Equal(t, rejections, e.rejected(t))
		var took []string
		for _, r := range s.Took(6) {
			took = append(took, r.Service())
		}
		assert.ElementsMatch(t, []string{"a", "busy", "b", "invalid", "later", "c"}, took, "each once; the other Profile of invalid is valid")
	}
}

func TestPermanentErrorCarriesWhatWasRejected(t *testing.T) {
	s := pprofservertest.Start(t, func(r pprofservertest.Received) pprofservertest.Answer {
		return map[bool]pprofservertest.Answer{true: {Status: 400}}[r.Service() == "bad"]
	})
	err := start(t, "endpoint: "+s.URL+withoutQueue).ConsumeProfiles(t.Context(), services(t, "a", "bad", "b"))
	require.True(t, consumererror.IsPermanent(err))
	rest, partial := ingest.NotAccepted(err)
	require.True(t, partial)
	assert.Equal(t, []string{"bad"}, servicesOf(rest))
}

func TestStatusDecidesBetweenRetryAndRejection(t *testing.T) {
	retryInfo := func(code codes.Code) *status.Status {
		with, err := status.New(code, "").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Second)})
		require.NoError(t, err)
		return with
	}
	for _, test := range []struct {
		answer pprofservertest.Answer
		reason string // none if it is retryable
		delay  string
	}{
		{pprofservertest.Answer{Status: 400}, reasonInvalid, ""},
		{pprofservertest.Answer{Status: 401}, reasonUnauthorized, ""},
		{pprofservertest.Answer{Status: 403}, reasonUnauthorized, ""},
		{pprofservertest.Answer{Status: 404}, reasonOther, ""},
		{pprofservertest.Answer{Status: 307, Message: "moved"}, reasonOther, ""},
		{pprofservertest.Answer{Status: 408}, "", ""},
		{pprofservertest.Answer{Status: 413}, reasonTooLarge, ""},
		{pprofservertest.Answer{Status: 422}, reasonInvalid, ""},
		{pprofservertest.Answer{Status: 429, RetryAfter: "3"}, "", "Throttle (3s)"},
		{pprofservertest.Answer{Status: 429, RetryAfter: time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}, "", "Throttle (59m"},
		{pprofservertest.Answer{Status: 429, RetryAfter: "soon"}, "", ""},
		{pprofservertest.Answer{Status: 500}, "", ""},
		{pprofservertest.Answer{Status: 501}, reasonOther, ""},
		{pprofservertest.Answer{Status: 503, RetryAfter: "1"}, "", "Throttle (1s)"},
		{pprofservertest.Answer{GRPC: status.New(codes.InvalidArgument, "")}, reasonInvalid, ""},
		{pprofservertest.Answer{GRPC: status.New(codes.Unauthenticated, "")}, reasonUnauthorized, ""},
		{pprofservertest.Answer{GRPC: status.New(codes.Unimplemented, "")}, reasonOther, ""},
		{pprofservertest.Answer{GRPC: status.New(codes.Internal, "")}, reasonOther, ""},
		{pprofservertest.Answer{GRPC: status.New(codes.ResourceExhausted, "")}, reasonTooLarge, ""},
		{pprofservertest.Answer{GRPC: retryInfo(codes.ResourceExhausted)}, "", "Throttle (2s)"},
		{pprofservertest.Answer{GRPC: retryInfo(codes.Unavailable)}, "", "Throttle (2s)"},
		{pprofservertest.Answer{GRPC: status.New(codes.Aborted, "")}, "", ""},
	} {
		protocol := protocolPyroscope
		if test.answer.GRPC != nil {
			protocol = protocolParca
		}
		s := pprofservertest.Start(t, func(pprofservertest.Received) pprofservertest.Answer { return test.answer })
		e := start(t, "endpoint: "+s.URL+"\nprotocol: "+protocol+withoutQueue)
		err := e.ConsumeProfiles(t.Context(), services(t, "a"))
		require.Error(t, err)
		assert.Equal(t, test.reason != "", consumererror.IsPermanent(err), "%v: %v", test.answer, err)
		if test.reason != "" {
			assert.Equal(t, map[string]int64{test.reason: 1}, e.rejected(t), "%v", test.answer)
		}
		assert.Contains(t, err.Error(), test.delay)
		assert.Equal(t, test.delay != "", strings.Contains(err.Error(), "Throttle"), err)
		assert.Equal(t, 1, s.Requests(), "no redirect is followed")
	}
}

// TestCredentialsStayWithTheServer_A3: no redirect of HTTP is followed. gRPC has none.
func TestCredentialsStayWithTheServer_A3(t *testing.T) {
	thief, stolen := profiletest.Thief(t)
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		seen := make(chan http.Header, 10)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen <- r.Header
			http.Redirect(w, r, thief+r.URL.Path, status)
		}))
		e := start(t, "endpoint: "+server.URL+"\nheaders: {authorization: Bearer s3cret, x-scope-orgid: s3cret}"+withoutQueue)
		err := e.ConsumeProfiles(t.Context(), services(t, "a"))
		assert.True(t, consumererror.IsPermanent(err), "%v", err)
		assert.Equal(t, "Bearer s3cret", (<-seen).Get("Authorization"))
		assert.NotContains(t, err.Error(), "s3cret")
		server.Close()
	}
	assert.Empty(t, stolen())
}

func TestConnectionErrorsKeepAllProfiles(t *testing.T) {
	away := httptest.NewServer(nil)
	away.Close()
	release := make(chan struct{})
	slow := pprofservertest.Start(t, func(pprofservertest.Received) pprofservertest.Answer { <-release; return pprofservertest.Answer{} })
	for name, endpoint := range map[string]string{"closes": closing(t, ""), "away": away.URL, "slow": slow.URL} {
		for _, protocol := range protocols {
			e := start(t, "endpoint: "+endpoint+"/?secret=geheim\ntimeout: 200ms\nprotocol: "+protocol+withoutQueue)
			err := e.ConsumeProfiles(t.Context(), services(t, "a", "b"))
			require.Error(t, err)
			require.False(t, consumererror.IsPermanent(err), "%s %s: %v", name, protocol, err)
			rest, _ := ingest.NotAccepted(err)
			assert.Equal(t, []string{"a", "b"}, servicesOf(rest), "%s %s", name, protocol)
			assert.NotContains(t, err.Error(), "geheim")
		}
	}
	close(release)
}

// closing starts a server that reads a part of each request, responds and closes the connection.
func closing(t *testing.T, response string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = r.Body.Read(make([]byte, 10))
		connection, _, err := w.(http.Hijacker).Hijack()
		if assert.NoError(t, err) {
			_, _ = io.WriteString(connection, response)
			_ = connection.Close()
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAcceptedProfileIsNotSentAgainIfTheResponseBreaksOff(t *testing.T) {
	for _, protocol := range []string{protocolPyroscope, protocolHTTP} {
		e := start(t, "endpoint: "+closing(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")+"\nprotocol: "+protocol+withoutQueue)
		require.NoError(t, e.ConsumeProfiles(t.Context(), services(t, "a")))
	}
}

func TestQueueRetriesOnlyWhatWasNotAccepted(t *testing.T) {
	for _, protocol := range protocols[:2] {
		failures := map[string]int{"b": 2, "c": 1}
		s := pprofservertest.Start(t, func(r pprofservertest.Received) pprofservertest.Answer {
			name := r.Service()
			if name == "d" {
				return pprofservertest.Answer{Status: 400, GRPC: status.New(codes.InvalidArgument, "")}
			}
			if failures[name]--; failures[name] >= 0 {
				return pprofservertest.Answer{Status: 429, GRPC: status.New(codes.Unavailable, "")}
			}
			return pprofservertest.Answer{}
		})
		e := start(t, "endpoint: "+s.URL+"\nretry_on_failure: {initial_interval: 1ms, max_interval: 5ms}\nprotocol: "+protocol)
		require.NoError(t, e.ConsumeProfiles(t.Context(), services(t, "a", "b", "c", "d", "e")))
		var order []string
		for _, r := range s.Took(4) {
			order = append(order, r.Service())
			assert.Equal(t, map[string]int64{"samples/count": 1, "cpu/nanoseconds": 2}, pprofservertest.Sums(r))
		}
		assert.Equal(t, []string{"a", "b", "c", "e"}, order)
	}
}

// Servers show nothing but the name of a function.
func TestFunctionsWithoutANameGetTheirSymbol(t *testing.T) {
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, PeriodType: &profile.ValueType{},
		Function: []*profile.Function{{SystemName: "symbol"}, {Name: "name", SystemName: "_Z4namev"}, {Name: "_Z4namev", SystemName: "_Z4namev"}},
	}
	complete(p, protocolHTTP)
	var names []string
	for _, f := range p.Function {
		names = append(names, f.Name+" "+f.SystemName)
	}
	require.Equal(t, []string{"symbol symbol", "name _Z4namev", "_Z4namev _Z4namev"}, names)
}

func TestReferencesAreResolvedAndMissingTimesFilledIn(t *testing.T) {
	pd := services(t, "checkout", "")
	for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		p.SetTime(0)
	}
	_, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd) // makes references of the strings of the resource
	require.NoError(t, err)
	s := pprofservertest.Start(t, nil)
	require.NoError(t, start(t, "endpoint: "+s.URL+withoutQueue).ConsumeProfiles(t.Context(), pd))
	got := s.Took(2)
	assert.Equal(t, []string{"checkout", "unknown_service"}, []string{got[0].Service(), got[1].Service()})
}

func TestPayloadsThatCannotBePprofAreRejected(t *testing.T) {
	s := pprofservertest.Start(t, nil)
	e := start(t, "endpoint: "+s.URL+withoutQueue)
	old := services(t, "a")
	for _, p := range old.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		for _, sample := range p.Samples().All() {
			sample.Values().FromRaw(nil)
		}
	}
	err := e.ConsumeProfiles(t.Context(), old)
	require.ErrorContains(t, err, "OTLP from before v1.10")
	require.True(t, consumererror.IsPermanent(err))
	outside := services(t, "a")
	outside.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0).SetStackIndex(99)
	err = e.ConsumeProfiles(t.Context(), outside)
	require.ErrorContains(t, err, "stack_index is 99")
	require.True(t, consumererror.IsPermanent(err))
	assert.Equal(t, map[string]int64{reasonConvert: 1, reasonNoValues: 1}, e.rejected(t))
	empty := services(t, "a")
	for _, p := range empty.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
	}
	require.NoError(t, e.ConsumeProfiles(t.Context(), empty), "Profiles without samples are left out")
	assert.Zero(t, s.Requests())
}

// A payload that refers to nothing may have no strings.
func TestPayloadsWithoutADictionaryAreSent(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty().Values().Append(3)
	for _, protocol := range protocols {
		s := pprofservertest.Start(t, nil)
		require.NoError(t, start(t, "endpoint: "+s.URL+"\nprotocol: "+protocol+withoutQueue).ConsumeProfiles(t.Context(), pd))
		assert.Equal(t, map[string]int64{"/": 3}, pprofservertest.Sums(s.Took(1)...), protocol)
	}
}

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"endpoint: http://a:4040": "",
		"endpoint: https://a/x\nprotocol: http\nlabels: {service.name: \"\", a.b: c}\nsample_labels: [thread.name]": "",
		"protocol: parca":                                          "endpoint is empty: must be a URL such as http://localhost:4040",
		"endpoint: http://u:s3cret@a":                              "endpoint has a user or password: must be in headers or auth, which are kept secret",
		"endpoint: \"http://a:s3cret\"":                            "endpoint is not a URL: must be one such as http://localhost:4040",
		"endpoint: a:4040":                                         "endpoint is a URL with the scheme \"a\": must be http or https, such as http://localhost:4040",
		"endpoint: http:///x":                                      "endpoint is a URL without a host: must be one such as http://localhost:4040",
		"endpoint: http://a\nprotocol: grpc":                       "protocol is \"grpc\": must be one of pyroscope, parca, http",
		"endpoint: http://a\ntimeout: 0s":                          "timeout is 0s: must be at least 1ms",
		"endpoint: http://a\nlabels: {a: b.c}":                     "labels::a is \"b.c\": must be a name of letters, digits and underscores, which does not start with a digit",
		"endpoint: http://a\nlabels: {a: pod}":                     "labels::k8s.pod.name is \"pod\": must be another label, as the exporter or another attribute sets it",
		"endpoint: http://a\nsample_labels: [pod]":                 "sample_labels::0 is \"pod\": must be another label, as the exporter or another attribute sets it",
		"endpoint: http://a\nlabel: {}":                            "unknown key label: must be one of",
		"endpoint: http://a\nprotocol: parca\nproxy_url: http://b": "proxy_url is \"set\": must be left out with protocol parca (gRPC takes the proxy from the environment)",
	})
}
