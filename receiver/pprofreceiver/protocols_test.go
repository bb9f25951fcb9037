// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// protocol is a way to push one profile.
type protocol struct {
	name    string
	success int
	path    string
	wrap    func(t testing.TB, profile []byte) (body []byte, headers []string)
}

// protocols are all ways to push, as their clients use them.
var protocols = []protocol{
	{"pprof", http.StatusNoContent, "/v1/pprof?service.name=checkout", func(_ testing.TB, profile []byte) ([]byte, []string) {
		return profile, nil
	}},
	{"ingest form", http.StatusOK, "/ingest?name=checkout", func(t testing.TB, profile []byte) ([]byte, []string) {
		t.Helper()
		return profiletest.Form(t, part("profile", "profile.pprof", profile))
	}},
	{"ingest raw", http.StatusOK, "/ingest?name=checkout&format=pprof", func(_ testing.TB, profile []byte) ([]byte, []string) {
		return profile, nil
	}},
	{"connect", http.StatusOK, httpserver.PushPath, func(_ testing.TB, profile []byte) ([]byte, []string) {
		return profiletest.PushRequest(profiletest.RawSeries(profile, "service_name", "checkout")), []string{"Content-Type", "application/proto"}
	}},
	{"connect JSON", http.StatusOK, httpserver.PushPath, func(t testing.TB, profile []byte) ([]byte, []string) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"series": []any{map[string]any{
			"labels":  []any{map[string]any{"name": "service_name", "value": "checkout"}},
			"samples": []any{map[string]any{"rawProfile": base64.StdEncoding.EncodeToString(profile), "ID": "one"}},
		}}})
		require.NoError(t, err)
		return body, []string{"Content-Type", "application/json; charset=utf-8"}
	}},
	{"datadog", http.StatusAccepted, httpserver.DatadogPath, func(t testing.TB, profile []byte) ([]byte, []string) {
		t.Helper()
		return profiletest.Form(t, attached("cpu.pprof", profile), event(`{"version":"4","family":"go","tags_profiler":"service:checkout"}`))
	}},
}

// sendBy pushes a profile in this protocol. It may be called from any goroutine.
func (b *testReceiver) sendBy(w protocol, profile []byte) answer {
	b.t.Helper()
	body, headers := w.wrap(b.t, profile)
	return b.post(w.path, body, headers...)
}

type formPart = profiletest.FormPart

func part(name, file string, body []byte) formPart {
	return formPart{Name: name, File: file, Body: body}
}

// arrived is a short form of a Profile.
type arrived struct {
	kind, sampleType, unit, temporality, display string
	value                                        int64
	time                                         uint64
	duration                                     time.Duration
}

func arrivals(t testing.TB, payloads ...pprofile.Profiles) (all []arrived) {
	t.Helper()
	for _, p := range profiletest.Expand(t, payloads...) {
		a := arrived{
			kind:       expand.Text(p.Scope.Attributes, attrkey.ProfileType),
			sampleType: p.Type, unit: p.Unit, time: p.Time, duration: time.Duration(p.Duration),
			temporality: expand.Text(p.Attributes, attrkey.Temporality),
			display:     expand.Text(p.Attributes, attrkey.DisplayName),
		}
		for _, s := range p.Samples {
			a.value += s.Sum.Int64()
		}
		all = append(all, a)
	}
	return all
}

// assertHolds compares a payload with a pprof, apart from the attributes that the receiver adds.
func assertHolds(t *testing.T, want *profile.Profile, got pprofile.Profiles) {
	t.Helper()
	bare := pprofile.NewProfiles()
	got.CopyTo(bare)
	table := bare.Dictionary()
	for _, p := range bare.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		var kept []int32
		for _, i := range p.AttributeIndices().All() {
			key := table.StringTable().At(int(table.AttributeTable().At(int(i)).KeyStrindex()))
			if key != attrkey.Temporality && key != attrkey.DisplayName && key != attrkey.DisplayUnit {
				kept = append(kept, i)
			}
		}
		p.AttributeIndices().FromRaw(kept)
	}
	assert.Empty(t, expand.DiffPprof(want, bare))
}

// exchange is a request to a receiver whose max_decompressed_size is 2MiB, and its response.
type exchange struct {
	name        string
	method      string // POST
	path        string // with the query
	contentType string
	headers     []string
	body        []byte
	parts       []formPart         // instead of body and contentType
	next        xconsumer.Profiles // accepts everything

	status int
	says   string // in the message; " ... " stands for any text
	reason string // in the metric of rejected requests; one of rejectionReasons
}

// statusCodes are those of google.rpc.Status, and connectCodes those of Connect's own errors.
var (
	statusCodes = map[int]codes.Code{
		400: codes.InvalidArgument, 404: codes.Unimplemented, 405: codes.Unimplemented, 413: codes.ResourceExhausted,
		415: codes.InvalidArgument, 500: codes.Internal, 503: codes.Unavailable,
	}
	connectCodes     = map[int]string{400: "invalid_argument", 500: "internal", 501: "unimplemented", 503: "unavailable"}
	rejectionReasons = map[int][]string{
		400: {"malformed", "limit", "body_size"}, 404: {"not_found"}, 405: {"method"}, 413: {"limit", "body_size"},
		415: {"unsupported"}, 500: {"pipeline_permanent"}, 501: {"unsupported"}, 503: {"pipeline_retryable"},
	}
)

// testExchanges tests each row, with the path and the content type of defaults if it has none.
func testExchanges(t *testing.T, defaults exchange, rows []exchange) {
	t.Helper()
	for _, row := range rows {
		row.method, row.path = cmp.Or(row.method, http.MethodPost), cmp.Or(row.path, defaults.path)
		row.contentType = cmp.Or(row.contentType, defaults.contentType)
		if row.next == nil {
			row.next = consumertest.NewNop()
		}
		t.Run(row.name, row.test)
	}
}

func (e exchange) test(t *testing.T) {
	t.Parallel()
	b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 2MiB}", e.next)
	body, headers := e.body, e.headers
	switch {
	case e.parts != nil:
		body, headers = profiletest.Form(t, e.parts...)
	case e.contentType != "":
		headers = append([]string{"Content-Type", e.contentType}, headers...)
	}
	path := strings.NewReplacer("{", "%7B", "}", "%7D").Replace(e.path)

	profiletest.Injected(t, "1 requests")
	got, err := b.send(e.method, path, bytes.NewReader(body), headers...)
	require.NoError(t, err)
	require.Equal(t, e.status, got.status, got.body)
	assert.Equal(t, map[int]string{503: "5"}[e.status], got.header.Get("Retry-After"))
	assert.Equal(t, map[int]string{405: "POST"}[e.status], got.header.Get("Allow"))
	assert.Zero(t, b.inFlight.InUse())
	assert.Equal(t, map[string]int64{strconv.Itoa(e.status): 1}, b.counts("otelcol_receiver_pprof_requests", "http.response.status_code"))
	rejections := b.counts("otelcol_receiver_pprof_rejected_requests", "reason")
	isConnect := strings.HasPrefix(path, httpserver.PushPath)
	if e.status < 300 {
		assert.Empty(t, rejections)
		if isConnect {
			assert.Equal(t, e.contentType, got.header.Get("Content-Type"))
		} else {
			assert.Contains(t, got.body, e.says)
			assert.Equal(t, e.says == "", got.body == "")
		}
		return
	}
	assert.Empty(t, b.counts("otelcol_receiver_pprof_skipped_attachments", "attachment"))
	reasons := rejectionReasons[e.status]
	if e.reason != "" {
		reasons = []string{e.reason}
	}
	require.Len(t, rejections, 1)
	for reason, n := range rejections {
		assert.Contains(t, reasons, reason)
		assert.EqualValues(t, 1, n)
	}

	assert.Equal(t, "application/json", got.header.Get("Content-Type"))
	if isConnect && e.status != 405 && e.status != 415 {
		var status struct{ Code, Message string }
		require.NoError(t, json.Unmarshal([]byte(got.body), &status))
		assert.Equal(t, connectCodes[e.status], status.Code)
		e.checkMessage(t, status.Message)
		assert.NotContains(t, status.Message, "curl", "the body is a message that holds profiles")
		return
	}
	var status spb.Status
	require.NoError(t, protojson.Unmarshal([]byte(got.body), &status))
	assert.Equal(t, int32(statusCodes[e.status]), status.Code)
	e.checkMessage(t, status.Message)

	// A client that accepts protobuf gets the same in protobuf.
	got, err = b.send(e.method, path, bytes.NewReader(body), append(headers, "Accept", "text/html, application/x-protobuf;q=0.9")...)
	require.NoError(t, err)
	require.Equal(t, e.status, got.status)
	assert.Equal(t, "application/x-protobuf", got.header.Get("Content-Type"))
	var again spb.Status
	require.NoError(t, proto.Unmarshal([]byte(got.body), &again))
	assert.True(t, proto.Equal(&status, &again), "%v is not %v", &again, &status)
}

func (e exchange) checkMessage(t *testing.T, message string) {
	t.Helper()
	assert.NotEmpty(t, message)
	for part := range strings.SplitSeq(e.says, " ... ") {
		assert.Contains(t, message, part)
	}
	assert.NotContains(t, message, "s3cret")
}
