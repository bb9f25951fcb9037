// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

func TestIngestRejections(t *testing.T) {
	good := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3))
	profilePart := part("profile", "profile.pprof", good)
	many := strings.Repeat("a=b,", 300)
	testExchanges(t, exchange{}, []exchange{
		{name: "folded stacks without a value", path: "/ingest?name=app", body: []byte("main;work\n"), status: 400, says: "line 1: \"main;work\": must be a stack"},
		{name: "folded stacks that overflow", path: "/ingest?name=app", body: []byte("main 9223372036854775807\n"), status: 400, says: "line 1: value is 9223372036854775807"},
		{name: "tree", path: "/ingest?name=app&format=tree", body: []byte("x"), status: 415, says: "format=groups"},
		{name: "a form of folded stacks", path: "/ingest?name=app&format=groups", parts: []formPart{part("profile", "", []byte("main 1\n"))}, status: 415, says: "want a form with a part named profile or jfr"},
		{name: "another form", path: "/ingest?name=app", body: []byte("main 1\n"), contentType: "multipart/form-data; boundary=x", status: 400, says: "body: not a form with the boundary that Content-Type states"},
		{name: "pprof without the format", path: "/ingest?name=app", body: good, status: 400, says: "profile, read as folded stacks without the parameter \"format\": line 2"},
		{name: "damaged gzip", path: "/ingest?name=app&format=pprof", body: append(profiletest.Gzip(t, good), 0x1f, 0x8b, 7, 0, 0, 0, 0, 0, 0, 0), status: 400, says: "bytes: invalid header"},
		{name: "folded text as pprof", path: "/ingest?name=app&format=pprof", body: []byte("main;work 3\n"), status: 400, says: "pprof"},
		{name: "no profile", path: "/ingest?name=app", parts: []formPart{part("sample_type_config", "", []byte("{}"))}, status: 400, says: "no part named profile"},
		{name: "two profiles", path: "/ingest?name=app", parts: []formPart{profilePart, profilePart}, status: 400, says: "duplicate part"},
		{name: "a config of another kind", path: "/ingest?name=app", parts: []formPart{profilePart, part("sample_type_config", "", []byte(`{"cpu":{"cumulative":"s3cret"}}`))}, status: 400, says: `wrong type at byte 29, of field "cumulative"`},
		{name: "a config of many types", path: "/ingest?name=app", parts: []formPart{profilePart, part("sample_type_config", "", []byte("{"+strings.Repeat(`"a":{},`, 1025)+`"a":{}}`))}, status: 413, says: "sample_type_config\": braces: 1027"},
		{name: "a time of 12 digits", path: "/ingest?name=app&from=170000000000", parts: []formPart{profilePart}, status: 400, says: "\"from\": not a time"},
		{name: "no end of the labels", path: "/ingest?name=app{a=b", parts: []formPart{profilePart}, status: 400, says: "\"name\": must be an application"},
		{name: "a label without a value", path: "/ingest?name=app{a}", parts: []formPart{profilePart}, status: 400, says: "\"name\": must be an application"},
		{name: "a label twice", path: "/ingest?name=app{a=b,a=c}", parts: []formPart{profilePart}, status: 400, says: "duplicate \"a\""},
		{name: "many labels", path: "/ingest?name=app{" + many + "}", parts: []formPart{profilePart}, status: 413, says: "limit of 256"},
	})
}

func TestIngestNames(t *testing.T) {
	for name, want := range map[string]map[string]any{
		"app":                            {"service.name": "app"},
		" app {}":                        {"service.name": "app"},
		"app{,a=b,}":                     {"service.name": "app", "a": "b"},
		"app{ a = b c }":                 {"service.name": "app", "a": "b c"},
		"app{service_name=app}":          {"service.name": "app"},
		"app{service_name=real}":         {"service.name": "real", "app_name": "app"},
		"app{service_name=x,app_name=y}": {"service.name": "x", "app_name": "y"},
		"app{service.name=real}":         {"service.name": "real", "app_name": "app"},
		"app{service.instance.id=1,__session_id__=2}": {"service.name": "app", "service.instance.id": "1"},
		"app{__internal__=1}":                         {"service.name": "app"},
		"{a=b}":                                       {"service.name": "unknown_service:app", "a": "b"},
		"":                                            {"service.name": "unknown_service:app"},
	} {
		pd := passedOn(t, "", func(b *testReceiver) answer {
			return b.post("/ingest?format=pprof&name="+url.QueryEscape(name), profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1)))
		})
		resource := pd.ResourceProfiles().At(0).Resource().Attributes().AsRaw()
		delete(resource, "process.executable.name")
		assert.Equal(t, want, resource, name)
	}
}

// The name of folded stacks ends in their type, as Pyroscope's own clients write it.
func TestNamesOfFoldedStacksEndInTheirType(t *testing.T) {
	for _, row := range []struct{ name, service, kind, sampleType, temporality string }{
		{"my.app.cpu{env=x}", "my.app", "cpu", "cpu nanoseconds 100000000", "delta"},
		{"my.app.itimer", "my.app", "cpu", "cpu nanoseconds 100000000", "delta"},
		{"my.app.wall{env=x}", "my.app", "wall", "wall nanoseconds 100000000", "delta"},
		{"my.app.alloc_objects", "my.app", "heap", "alloc_objects count 10", "delta"},
		{"my.app.alloc_space", "my.app", "heap", "alloc_space bytes 10", "delta"},
		{"my.app.inuse_space", "my.app", "heap", "inuse_space bytes 10", "instant"},
		{"my.app.goroutines", "my.app", "goroutine", "goroutines count 10", "instant"},
		{"my.app.mutex_count", "my.app", "mutex", "contentions count 10", "delta"},
		{"my.app.mutex_duration", "my.app", "mutex", "delay nanoseconds 10", "delta"},
		{"my.app.block_count", "my.app", "block", "contentions count 10", "delta"},
		{"my.app.lock_duration", "my.app", "mutex", "delay nanoseconds 10", "delta"},
		{"my.app", "my.app", "cpu", "cpu nanoseconds 100000000", "delta"},
		{"cpu", "cpu", "cpu", "cpu nanoseconds 100000000", "delta"},
		{".cpu", ".cpu", "cpu", "cpu nanoseconds 100000000", "delta"},
	} {
		pd := passedOn(t, "", func(b *testReceiver) answer {
			return b.post(httpserver.IngestPath+"?format=folded&from=1700000000&until=1700000010&name="+url.QueryEscape(row.name), []byte("main;a 10\n"))
		})
		service, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
		assert.Equal(t, row.service, service.Str(), row.name)
		all := arrivals(t, pd)
		require.Len(t, all, 1, row.name)
		assert.Equal(t, row.kind, all[0].kind, row.name)
		assert.Equal(t, row.sampleType, fmt.Sprint(all[0].sampleType, " ", all[0].unit, " ", all[0].value), row.name)
		assert.Equal(t, row.temporality, all[0].temporality, row.name)
	}
	pprof := passedOn(t, "", func(b *testReceiver) answer {
		return b.post("/ingest?format=pprof&name=my.app.cpu", profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1)))
	})
	service, _ := pprof.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
	assert.Equal(t, "my.app.cpu", service.Str(), "only names of folded stacks have a type")
}

func TestIngestFoldedStacks(t *testing.T) {
	const stacks, lines = "main;work 3\nmain;idle 1", "main;work 7\nmain;idle\nmain;work 7\n"
	for _, row := range []struct{ query, body, want string }{
		{"", stacks, "cpu nanoseconds main;idle 10000000 main;work 30000000"},
		{"&format=groups&units=samples", stacks, "cpu nanoseconds main;idle 10000000 main;work 30000000"},
		{"&format=folded&sampleRate=1000&spyName=pyroscope-rs", stacks, "cpu nanoseconds main;idle 1000000 main;work 3000000"},
		{"&format=lines&sampleRate=1000", lines, "cpu nanoseconds main;idle 1000000 main;work 7 2000000"},
		{"&format=collapsed&units=bytes", stacks, "alloc_space bytes main;idle 1 main;work 3"},
		{"&format=groups&units=objects&aggregationType=average", stacks, "inuse_objects count main;idle 1 main;work 3"},
		{"&format=groups&units=lock_nanoseconds", stacks, "delay nanoseconds main;idle 1 main;work 3"},
		{"&format=groups&units=lock_samples", stacks, "contentions count main;idle 1 main;work 3"},
		{"&format=groups&units=goroutines", stacks, "goroutines count main;idle 1 main;work 3"},
	} {
		pd := passedOn(t, "", func(b *testReceiver) answer {
			return b.post(httpserver.IngestPath+"?name=cart&from=1700000000&until=1700000010"+row.query, []byte(row.body))
		})
		p := profiletest.Expand(t, pd)[0]
		text, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
		require.NoError(t, err)
		assert.Equal(t, row.want, p.Type+" "+p.Unit+" "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " "), row.query)
		assert.Equal(t, uint64(1700000000e9), p.Time)
		if p.Type != "inuse_objects" && p.Type != "goroutines" { // snapshots have none
			assert.Equal(t, uint64(10e9), p.Duration)
		}
		assert.NotEmpty(t, p.ProfileID)
	}
}
