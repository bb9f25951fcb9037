// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func (b *bench) connect(body []byte, headers ...string) answer {
	b.t.Helper()
	a, err := b.send(http.MethodPost, connectPath, bytes.NewReader(body), append([]string{"Content-Type", "application/proto"}, headers...)...)
	assert.NoError(b.t, err)
	return a
}

func TestConnect(t *testing.T) {
	next := newSink(t)
	b := startBench(t, serverYAML+"resource_attributes: {deployment.environment.name: test}", next)
	one, two := samplePprof("/bin/app", 3), samplePprof("/bin/other", 4)
	got := b.connect(pushRequest(
		seriesMessage(profiletest.Gzip(t, plain(t, one)), "service_name", "checkout", "__name__", "process_cpu", "__delta__", "false", "__session_id__", "s1", "region", "eu", "pyroscope_spy", "pyroscope-rs"),
		seriesMessage(plain(t, two), "service_name", "cart", "__name__", "custom"),
	))
	require.Equal(t, http.StatusOK, got.status, got.body)
	assert.Equal(t, "application/proto", got.header.Get("Content-Type"))
	assert.Empty(t, got.body, "an empty PushResponse")

	all := next.AllProfiles()
	require.Len(t, all, 2)
	if name, _ := all[0].ResourceProfiles().At(0).Resource().Attributes().Get("service.name"); name.Str() != "checkout" {
		all[0], all[1] = all[1], all[0]
	}
	assertHolds(t, one, all[0])
	assertHolds(t, two, all[1])
	assert.Equal(t, map[string]any{
		"service.name": "checkout", "service.instance.id": "s1", "region": "eu", "pyroscope.spy": "pyroscope-rs",
		"deployment.environment.name": "test", "process.executable.name": "app",
	}, all[0].ResourceProfiles().At(0).Resource().Attributes().AsRaw())
	kind, _ := all[0].ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Get("profile.type")
	assert.Equal(t, "cpu", kind.Str())
	kind, _ = all[1].ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().Get("profile.type")
	assert.Equal(t, "custom", kind.Str())
}

func TestConnectTemporality(t *testing.T) {
	for _, row := range []struct {
		name, delta string
		types       []string
		want        []string
	}{
		{"memory", "", []string{"alloc_space", "inuse_space"}, []string{"cumulative", "instant"}},
		{"memory", "true", []string{"alloc_space", "inuse_space"}, []string{"cumulative", "instant"}},
		{"memory", "false", []string{"alloc_space", "inuse_space"}, []string{"delta", "instant"}},
		{"mutex", "", []string{"contentions", "delay"}, []string{"cumulative", "cumulative"}},
		{"block", "false", []string{"contentions", "delay"}, []string{"delta", "delta"}},
		{"goroutines", "", []string{"goroutine"}, []string{"instant"}},
		{"process_cpu", "", []string{"samples", "cpu"}, []string{"delta", "delta"}},
		{"custom", "", []string{"things"}, []string{""}},
	} {
		next := newSink(t)
		b := startBench(t, serverYAML, next)
		labels := []string{"__name__", row.name}
		if row.delta != "" {
			labels = append(labels, "__delta__", row.delta)
		}
		require.Equal(t, http.StatusOK, b.connect(pushRequest(seriesMessage(plain(t, withTypes(row.types...)), labels...))).status)
		got := map[string]string{}
		for _, v := range views(t, next, 0) {
			got[v.sampleType] = v.attributes["profile.temporality"]
		}
		for i, sampleType := range row.types {
			assert.Equal(t, row.want[i], got[sampleType], "%s of %s, __delta__ %q", sampleType, row.name, row.delta)
		}
	}
}

// Row R10 of the faults, the part of Connect: its codes, in its form.
func TestR10_ConnectCodes(t *testing.T) {
	good := plain(t, samplePprof("/bin/app", 3))
	request := pushRequest(seriesMessage(good, "service_name", "checkout"))
	zeros := make([]byte, 3<<20)
	for _, row := range []struct {
		name        string
		method      string
		contentType string // application/proto
		body        []byte
		headers     []string
		next        xconsumer.Profiles
		status      int
		code        string // "" where the answer is not Connect's
		says        string
	}{
		{name: "good", body: request, status: 200},
		{name: "good, with the version", body: request, headers: []string{"Connect-Protocol-Version", "1", "Connect-Timeout-Ms", "1000"}, status: 200},
		{name: "gzipped", body: profiletest.Gzip(t, request), headers: []string{"Content-Encoding", "gzip"}, status: 200},
		{name: "in zstd", body: profiletest.Zstd(t, request), headers: []string{"Content-Encoding", "zstd"}, status: 200},
		{name: "no series", body: []byte{0x1a, 0x00}, status: 200},
		{name: "unknown fields", body: append(protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 1), request...), status: 200},

		{name: "empty", status: 400, code: "invalid_argument", says: "empty"},
		{name: "cut off", body: request[:len(request)-1], status: 400, code: "invalid_argument", says: "ends inside a field"},
		{name: "not gzip as said", body: request, headers: []string{"Content-Encoding", "gzip"}, status: 400, code: "invalid_argument", says: "not gzip"},
		{name: "no profile in it", body: pushRequest(seriesMessage(nil)), status: 400, code: "invalid_argument", says: "series[0].samples[0]: empty"},
		{name: "a text for a profile", body: pushRequest(seriesMessage([]byte("hello"))), status: 400, code: "invalid_argument", says: "series[0].samples[0]"},
		{name: "a label twice", body: pushRequest(seriesMessage(good, "a", "1", "a", "2")), status: 400, code: "invalid_argument", says: `series[0].labels: "a" is there twice`},
		{name: "a label that is not UTF-8", body: pushRequest(seriesMessage(good, "a", "\xff")), status: 400, code: "invalid_argument", says: "UTF-8"},
		{name: "JSON cut off", contentType: "application/json", body: []byte(`{"series":[`), status: 400, code: "invalid_argument", says: "JSON"},
		{name: "JSON with a number", contentType: "application/json", body: []byte(`{"series":7}`), status: 400, code: "invalid_argument", says: "series"},
		{name: "JSON with bad base64", contentType: "application/json", body: []byte(`{"series":[{"samples":[{"rawProfile":"!"}]}]}`), status: 400, code: "invalid_argument", says: "JSON: a profile is not base64"},
		{name: "JSON with a long label", contentType: "application/json", body: []byte(`{"series":[{"labels":[{"name":"` + strings.Repeat("a", 500_000) + `"}]}]}`), status: 429, code: "resource_exhausted", says: "size in bytes of a name or a value"},
		{name: "another version", body: request, headers: []string{"Connect-Protocol-Version", "2"}, status: 400, code: "invalid_argument", says: "want 1"},
		{name: "JFR", body: pushRequest(seriesMessage([]byte("FLR\x00abc"))), status: 501, code: "unimplemented", says: "JFR"},
		{name: "Content-Encoding br", body: request, headers: []string{"Content-Encoding", "br"}, status: 501, code: "unimplemented", says: "br"},

		{name: "too large", body: zeros, status: 429, code: "resource_exhausted", says: "limit"},
		{name: "gzipped, too large", body: profiletest.Gzip(t, zeros), headers: []string{"Content-Encoding", "gzip"}, status: 429, code: "resource_exhausted", says: "limit"},
		{name: "a bomb in it", body: pushRequest(seriesMessage(profiletest.Gzip(t, zeros))), status: 429, code: "resource_exhausted", says: "series[0].samples[0]"},
		{name: "many series", body: bytes.Repeat([]byte{0x0a, 0x00}, maxAttachments+1), status: 429, code: "resource_exhausted", says: "series: more than the limit of 256"},
		{name: "many samples", body: pushRequest(bytes.Repeat([]byte{0x12, 0x00}, maxAttachments+1)), status: 429, code: "resource_exhausted", says: "samples: more than"},
		{name: "many labels", body: pushRequest(bytes.Repeat([]byte{0x0a, 0x00}, maxAttributes+1)), status: 429, code: "resource_exhausted", says: "labels: 257"},
		{name: "JSON of many series", contentType: "application/json", body: []byte(`{"series":[` + strings.Repeat("{},", maxAttachments) + `{}]}`), status: 429, code: "resource_exhausted", says: "series"},
		{name: "JSON of many nothings", contentType: "application/json", body: []byte(`{"series":[` + strings.Repeat("null,", maxPushedJSON) + `{}]}`), status: 429, code: "resource_exhausted", says: "commas"},

		{name: "permanent", body: request, next: consumertest.NewErr(consumererror.NewPermanent(errors.New("says no"))), status: 500, code: "internal", says: "says no"},
		{name: "retryable", body: request, next: consumertest.NewErr(errors.New("is away")), status: 503, code: "unavailable", says: "is away"},

		{name: "GET", method: http.MethodGet, status: 405},
		{name: "gRPC", contentType: "application/grpc", body: request, status: 415, says: "application/proto"},
		{name: "a stream", contentType: "application/connect+proto", body: request, status: 415},
		{name: "no content type", contentType: " ", body: request, status: 415},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.next == nil {
				row.next = consumertest.NewNop()
			}
			if row.method == "" {
				row.method = http.MethodPost
			}
			if row.contentType == "" {
				row.contentType = "application/proto"
			}
			b := startBench(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 2MiB}", row.next)
			got, err := b.send(row.method, connectPath, bytes.NewReader(row.body), append([]string{"Content-Type", row.contentType}, row.headers...)...)
			require.NoError(t, err)
			require.Equal(t, row.status, got.status, got.body)
			assert.Zero(t, b.server.budget.InUse())
			profiletest.Injected(t, "1 requests")
			assert.Equal(t, map[string]int64{http.StatusText(row.status): 1}, statusTexts(b.counts("otelcol_receiver_pprof_requests", "http.response.status_code")))
			if row.status == 200 {
				assert.Equal(t, row.contentType, got.header.Get("Content-Type"))
				return
			}
			assert.Contains(t, strings.ReplaceAll(got.body, `\"`, `"`), row.says)
			if row.status == http.StatusServiceUnavailable {
				assert.Equal(t, "5", got.header.Get("Retry-After"))
			}
			if row.code == "" {
				return
			}
			var status struct{ Code, Message string }
			require.NoError(t, json.Unmarshal([]byte(got.body), &status))
			assert.Equal(t, row.code, status.Code)
			assert.NotEmpty(t, status.Message)
			assert.Equal(t, "application/json", got.header.Get("Content-Type"))
		})
	}
}

func statusTexts(counts map[string]int64) map[string]int64 {
	texts := map[string]int64{}
	for status, n := range counts {
		var code int
		for _, digit := range status {
			code = 10*code + int(digit-'0')
		}
		texts[http.StatusText(code)] = n
	}
	return texts
}

// The names of fields and the alphabets of base64 that protobuf's JSON takes.
func TestConnectJSON(t *testing.T) {
	for _, body := range []string{
		`{"series":[{"samples":[{"rawProfile":"+//+"}]}]}`,
		`{"series":[{"samples":[{"raw_profile":"-__-"}]}]}`,
		`{"series":[{"samples":[{"rawProfile":"+//+","ID":"x"}],"annotations":[{"key":"a"}]}],"unknown":{}}`,
	} {
		all, err := readPushRequestJSON([]byte(body))
		require.NoError(t, err, body)
		assert.Equal(t, []pushedSeries{{samples: [][]byte{{0xfb, 0xff, 0xfe}}}}, all, body)
	}
	all, err := readPushRequestJSON([]byte(`{"series":[{"labels":[{"name":"a","value":"b"}],"samples":[{"rawProfile":"YQ"},{"rawProfile":"YQ=="},{}]}]}`))
	require.NoError(t, err)
	assert.Equal(t, []pushedSeries{{labels: []label{{"a", "b"}}, samples: [][]byte{[]byte("a"), []byte("a"), nil}}}, all)
}

// Row R3 of the faults, the part of requests that hold several profiles: entries
// are bounded before there is memory for them.
func TestR3_EntriesOfPushRequests(t *testing.T) {
	for name, message := range map[string][]byte{
		"series":  bytes.Repeat([]byte{0x0a, 0x00}, 1<<20),
		"samples": pushRequest(bytes.Repeat([]byte{0x12, 0x00}, 1<<20)),
		"labels":  pushRequest(bytes.Repeat([]byte{0x0a, 0x00}, 1<<20)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readPushRequest(message)
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, "limit of 256", name)
		profiletest.Injected(t, fmt.Sprintf("1 requests of %d KiB of tiny entries", len(message)>>10))
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), name)
	}
}

// The same for JSON: what is allocated is what is reserved before.
func TestR3_MemoryOfPushRequestsInJSON(t *testing.T) {
	profile := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb, 0xef}, 4<<20))
	long := strings.Repeat("a", 6*maxAttributeLength)
	for name, message := range map[string]string{
		"profile":            `{"series":[{"samples":[{"rawProfile":"` + profile + `"}]}]}`,
		"escaped profile":    `{"series":[{"samples":[{"rawProfile":"` + strings.ReplaceAll(profile[:1<<20], "/", `\/`) + `\u002b` + profile[:3] + `"}]}]}`,
		"profile, cut short": `{"series":[{"samples":[{"rawProfile":"` + profile[:1<<20] + `*"}]}]}`,
		"labels":             `{"series":[{"labels":[` + strings.Repeat(`{"name":"`+long+`"},`, 20) + `{}]}]}`,
		"escaped labels":     `{"series":[{"labels":[` + strings.Repeat(`{"value":"`+strings.Repeat(`\u0061`, maxAttributeLength)+`"},`, 20) + `{}]}]}`,
		"a long label":       `{"series":[{"labels":[{"name":"` + strings.Repeat(`\u0061`, 1<<20) + `"}]}]}`,
		"series":             `{"series":[` + strings.Repeat(`{},`, 30000) + `{}]}`,
		"samples":            `{"series":[{"samples":[` + strings.Repeat(`{},`, 30000) + `{}]}]}`,
		"names":              `{"series":[{"labels":[` + strings.Repeat(`{},`, 30000) + `{}]}]}`,
		"notes":              `{"series":[{"annotations":[` + strings.Repeat(`{"key":"`+long+`"},`, 20) + `{}]}]}`,
	} {
		body := []byte(message)
		allocated := allocatedBy(func() { _, _ = readPushRequestJSON(body) })
		t.Logf("%s: %d KiB of a message of %d KiB, %d KiB reserved", name, allocated>>10, len(body)>>10, memoryOfJSON(body)>>10)
		profiletest.Injected(t, "1 requests in JSON")
		most := memoryOfJSON(body) + 64<<10
		if name == "escaped labels" { // each is copied twice, of which one is garbage at once
			most += int64(len(body))
		}
		assert.LessOrEqual(t, int64(allocated), most, name)
	}
}

// What is read without a copy is what the library reads with several.
func TestBase64OfJSON(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const characters = "AQgwZ09+/-_=!\\ "
	valid := 0
	for range 20000 {
		var text strings.Builder
		for range r.IntN(10) {
			if c := characters[r.IntN(len(characters))]; r.IntN(8) == 0 {
				fmt.Fprintf(&text, `\u%04x`, c)
			} else if c == '/' && r.IntN(2) == 0 || c == '\\' {
				fmt.Fprintf(&text, `\%c`, c)
			} else {
				text.WriteByte(c)
			}
		}
		text.WriteString(strings.Repeat("=", r.IntN(3)))
		quoted := []byte(`"` + text.String() + `"`)
		var plain string
		require.NoError(t, json.Unmarshal(quoted, &plain))
		plain = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(plain, "="))
		want, wantErr := base64.RawStdEncoding.DecodeString(plain)
		var got base64Bytes
		err := json.Unmarshal(quoted, &got)
		require.Equal(t, wantErr != nil, err != nil, "%s: %v, want %v", quoted, err, wantErr)
		if err == nil {
			valid++
			require.Equal(t, want, []byte(got), "%s", quoted)
		}
	}
	assert.NotZero(t, valid)
}

func FuzzReadPushRequest(f *testing.F) {
	f.Add(pushRequest(seriesMessage([]byte("profile"), "a", "b")), false)
	f.Add([]byte(`{"series":[{"labels":[{"name":"a","value":"b"}],"samples":[{"rawProfile":"YQ"}]}]}`), true)
	f.Fuzz(func(t *testing.T, message []byte, isJSON bool) {
		read := readPushRequest
		if isJSON {
			read = readPushRequestJSON
		}
		all, err := read(message)
		if err != nil {
			return
		}
		size, samples := 0, 0
		for _, series := range all {
			for _, sample := range series.samples {
				size += len(sample)
				samples++
			}
		}
		if size > len(message) || samples > maxAttachments {
			t.Errorf("%d samples of %d bytes in a message of %d", samples, size, len(message))
		}
	})
}
