// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// Attributes of a request are bounded in length, not only in number: a small compressed request must
// not become a large attribute.
func TestAttributeLengthsAreBounded_R8(t *testing.T) {
	within, over := strings.Repeat("x", httpserver.MaxAttributeLength), strings.Repeat("x", httpserver.MaxAttributeLength+1)
	body := profiletest.Pprof(t, samplePprof("/bin/app", 1))
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
	raw := profiletest.Pprof(t, samplePprof("/bin/app", 3))
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
		next := newSink(t)
		b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 4MiB}\nmax_in_flight: 64MiB", next)
		good := profiletest.Gzip(t, profiletest.Pprof(t, samplePprof("/bin/app", 3)))
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
