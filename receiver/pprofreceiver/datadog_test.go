// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

func (b *testReceiver) sendForm(path string, parts ...formPart) answer {
	b.t.Helper()
	body, headers := profiletest.Form(b.t, parts...)
	return b.post(path, body, headers...)
}

// attachmentPassedOn is passedOn for an attachment with goEvent.
func attachmentPassedOn(t *testing.T, file string, p *profile.Profile) pprofile.Profiles {
	t.Helper()
	return passedOn(t, "", func(b *testReceiver) answer {
		return b.sendForm(httpserver.DatadogPath, attached(file, profiletest.Pprof(t, p)), event(goEvent))
	})
}

func attached(file string, body []byte) formPart {
	return part(file, file, body)
}

func event(document string) formPart {
	return part("event", "event.json", []byte(document))
}

const goEvent = `{
	"start":"2023-11-14T22:13:20Z","end":"2023-11-14T22:14:20.5Z","family":"go","version":"4",
	"attachments":["cpu.pprof","metrics.json"],
	"tags_profiler":"process_id:42,runtime_version:1.26,runtime_arch:amd64,service:old,team:a:b,flag,service:checkout,profile_seq:7,runtime:go,runtime-id:abc-1,env:test,version:1.2,host:node-1,,:x",
	"endpoint_counts":{"GET /":3}
}`

// The labels of Datadog's libraries get OpenTelemetry's names.
func TestDatadogLabels(t *testing.T) {
	p := profiletest.CPUPprof("/bin/app", 3)
	p.Sample[0].Label = map[string][]string{"thread name": {"worker"}, "trace id": {"0102030405060708090a0b0c0d0e0f10"}, "trace endpoint": {"GET /"}}
	p.Sample[0].NumLabel = map[string][]int64{
		"thread id": {42}, "span id": {0x0102030405060708}, "local root span id": {7}, "end_timestamp_ns": {p.TimeNanos + 1},
	}
	sample := profiletest.Expand(t, attachmentPassedOn(t, "auto.pprof", p))[0].Samples[0]
	require.Len(t, sample.Points, 1)
	assert.EqualValues(t, p.TimeNanos+1, sample.Points[0].Timestamp)
	assert.Equal(t, "0102030405060708090a0b0c0d0e0f10/0102030405060708", sample.Link)
	got := map[string]any{}
	for _, a := range sample.Attributes {
		got[a.Key] = a.Value
	}
	assert.Equal(t, map[string]any{
		"thread.id": int64(42), "thread.name": "worker", "trace endpoint": "GET /", "trace id": "0102030405060708090a0b0c0d0e0f10",
		"span id": int64(0x0102030405060708), "local root span id": int64(7),
	}, got)
}

// A label keeps its name if the new name exists, or if something else uses its string.
func TestRenamedAttributesDoNotCollide(t *testing.T) {
	both, elsewhere := profiletest.CPUPprof("/bin/app", 3), profiletest.CPUPprof("/bin/app", 3)
	both.Sample[0].Label = map[string][]string{"thread name": {"a"}, "thread.name": {"b"}}
	elsewhere.Sample[0].Label = map[string][]string{"thread name": {"a"}}
	elsewhere.Function[0].Name = "thread name"
	for _, p := range []*profile.Profile{both, elsewhere} {
		assertHolds(t, p, attachmentPassedOn(t, "auto.pprof", p))
	}
}

func TestDatadogRejections(t *testing.T) {
	good := attached("cpu.pprof", profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3)))
	var many []formPart
	for i := range httpserver.MaxEntries + 1 {
		many = append(many, attached(fmt.Sprint(i, ".pprof"), good.Body))
	}
	var tooMany []formPart
	for range 2*httpserver.MaxEntries + 1 {
		tooMany = append(tooMany, attached("metrics.json", nil))
	}
	whole, formType := profiletest.Form(t, good, event("{}"))
	testExchanges(t, exchange{path: httpserver.DatadogPath}, []exchange{
		{name: "no event", parts: []formPart{good}, status: 400, says: "no part named event"},
		{name: "a JFR that is none", parts: []formPart{attached("main.jfr.lz4", []byte("x y")), event("{}")}, status: 400, says: "attachment \"main.jfr\": looks like text"},
		{name: "half a JFR", parts: []formPart{attached("main.jfr", []byte("FLR\x00")), attached("metrics.json", nil), event("{}")}, status: 400, says: "jfr: chunk 1, byte 0"},
		{name: "only metrics", parts: []formPart{attached("metrics.json", []byte("[]")), event("{}")}, status: 202, says: "no attachment is a profile"},
		{name: "no attachment", parts: []formPart{event("{}")}, status: 400, says: "no attachment is a profile: the name of its file must be go.trace or end in .pprof or .jfr"},
		{name: "a profile of another name", parts: []formPart{attached("cpu.prof", good.Body), event("{}")}, status: 400, says: "no attachment is a profile"},
		{name: "no JSON", parts: []formPart{good, event("s3cret")}, status: 400, says: "malformed JSON at byte 1"},
		{name: "an event that is a list", parts: []formPart{good, event(`["s3cret"]`)}, status: 400, says: `part "event": wrong type at byte 1`},
		{name: "a start that is no time", parts: []formPart{good, event(`{"start":"s3cret"}`)}, status: 400, says: `body: part "event": field "start": not a time, want one such as 2026-01-02T15:04:05Z`},
		{name: "an end before 1970", parts: []formPart{good, event(`{"end":"1969-01-01T00:00:00Z"}`)}, status: 400, says: `field "end": not a time`},
		{name: "many tags", parts: []formPart{good, event(`{"tags_profiler":"` + strings.Repeat("a:b,", 300) + `"}`)}, status: 413, says: `body: part "event": tags_profiler: 301`},
		{name: "a large event", parts: []formPart{good, event(strings.Repeat(" ", httpserver.MaxDocument+1))}, status: 413, says: "event"},
		{name: "many profiles", parts: append(many, event("{}")), status: 413, says: "profiles: 257"},
		{name: "many parts", parts: append(tooMany, event("{}")), status: 413, says: "parts"},
		{name: "an empty profile", parts: []formPart{attached("cpu.pprof", nil), event("{}")}, status: 400, says: `attachment "cpu.pprof": empty`},
		{name: "cut off", body: whole[:len(whole)/2], headers: formType, status: 400, says: "cut short"},
		{name: "the end cut off", body: whole[:len(whole)-5], headers: formType, status: 400, says: "cut short"},
		{name: "gzipped as a whole", body: profiletest.Gzip(t, whole), headers: append(formType, "Content-Encoding", "gzip"), status: 202},
		{name: "no form: no boundary", contentType: "multipart/form-data", body: []byte("x"), status: 415, says: "multipart/form-data with a boundary"},
	})
}

// An invalid profile does not affect the others of its request, and the response names it.
func TestOthersOfTheRequestAreKept_R4(t *testing.T) {
	good := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3))
	for name, bad := range map[string]struct {
		body   []byte
		status int
	}{
		"malformed":  {[]byte("hello"), 400},
		"empty":      {nil, 400},
		"bad gzip":   {profiletest.Gzip(t, good)[:30], 400},
		"half a JFR": {[]byte("FLR\x00"), 400},
		"a bomb":     {profiletest.Gzip(t, make([]byte, 4<<20)), 413},
	} {
		next := &sink{t: t}
		b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 2MiB}", next)
		got := b.sendForm(httpserver.DatadogPath, attached("cpu.pprof", good), attached("heap.pprof", bad.body), attached("block.pprof", good), attached("mutex.pprof", []byte("also bad")), event("{}"))
		assert.Equal(t, bad.status, got.status, "%s: %s", name, got.body)
		assert.Contains(t, got.body, "heap.pprof")
		assert.Contains(t, got.body, "1 more")
		assert.Equal(t, map[string]int64{httpserver.DatadogPath: 2}, b.counts("otelcol_receiver_pprof_rejected_requests", "endpoint"), "one for each")
		got = b.connect(profiletest.PushRequest(profiletest.RawSeries(good), profiletest.RawSeries(bad.body), profiletest.RawSeries(good)))
		assert.Equal(t, http.StatusBadRequest, got.status, "%s: %s", name, got.body)
		assert.Contains(t, got.body, "series[1].samples[0]")
		profiletest.Account(t, "3 faulty profiles among good ones", 4, len(next.AllProfiles()), 0)
		assert.Len(t, next.AllProfiles(), 4, name)
	}
}

// If one profile is to be retried, the response says so, whatever the outcome of the others.
func TestRetryPrecedesOtherRejections(t *testing.T) {
	good := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 3))
	later, never := errors.New("not now"), consumererror.NewPermanent(errors.New("never"))
	for status, errs := range map[int]map[string]error{ // by profile type
		http.StatusServiceUnavailable:  {"cpu": never, "heap": later},
		http.StatusInternalServerError: {"heap": never},
	} {
		b := startTestReceiver(t, serverYAML, consumer(t, func(_ context.Context, pd pprofile.Profiles) error {
			kind, _ := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Get(attrkey.ProfileType)
			return errs[kind.AsString()]
		}))
		got := b.sendForm(httpserver.DatadogPath, attached("cpu.pprof", good), attached("heap.pprof", good), attached("bad.pprof", []byte("x")), event("{}"))
		assert.Equal(t, status, got.status, got.body)
		assert.Equal(t, map[int]string{http.StatusServiceUnavailable: "5"}[status], got.header.Get("Retry-After"))
	}
}
