// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesviewextension

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/extension/profilesviewextension/internal/metadatatest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// load reads and validates a configuration as the Collector does.
func load(t *testing.T, yaml string) (*Config, error) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	return cfg, profiletest.LoadConfig(yaml, cfg)
}

func TestConfigKeys(t *testing.T) {
	cfg, err := load(t, "{}")
	require.NoError(t, err)
	assert.Equal(t, "localhost:4041", cfg.HTTP.NetAddr.Endpoint)
	assert.Equal(t, "./profiles", cfg.Directory)
	assert.GreaterOrEqual(t, cfg.MaxMemory, minMemory)

	cfg, err = load(t, `
endpoint: 0.0.0.0:4041
directory: /var/lib/profiles
max_memory: 64MiB
allow_unauthenticated: true
tls: {cert_file: a, key_file: b}
`)
	require.NoError(t, err)
	assert.Equal(t, "/var/lib/profiles", cfg.Directory)
	assert.Equal(t, 64*config.MiB, cfg.MaxMemory)
	assert.True(t, cfg.HTTP.TLS.HasValue())
}

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	const beyond = "must be an address of this computer, such as localhost:4041, unless auth or tls::client_ca_file is set, or allow_unauthenticated is true"
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"endpont: localhost:1":   "unknown key endpont",
		"max_mem: 1GiB":          "unknown key max_mem",
		"tls: {cert: a}":         "unknown key tls::cert",
		"endpoint: ''":           `endpoint is "": must be an address such as localhost:4041`,
		"endpoint: 0.0.0.0:4041": `endpoint is "0.0.0.0:4041": ` + beyond,
		"{endpoint: '0.0.0.0:1', tls: {cert_file: a, key_file: b}}": `endpoint is "0.0.0.0:1": ` + beyond,
		"endpoint: :4041":                                           `endpoint is ":4041": ` + beyond,
		"endpoint: example.com:4041":                                `endpoint is "example.com:4041": ` + beyond,
		"directory: ''":                                             `directory is "": must be the directory`,
		"max_memory: 1MiB":                                          "max_memory is 1MiB: must be at least 16MiB",
		"write_timeout: 30":                                         "write_timeout is 30: must be a duration with a unit",
		"write_timeout: 30ms":                                       "write_timeout is 30ms: must be 0 (no timeout) or at least 1s",
		"allowed_hosts: ['http://a']":                               `allowed_hosts is "http://a": must be host names without scheme and port`,
		"allowed_hosts: ['*.example']":                              `allowed_hosts is "*.example"`,
		"trace_url: 'ftp://a/{trace_id}'":                           `trace_url is a URL with the scheme "ftp": must be http or https`,
		"trace_url: 'https://a/trace'":                              `trace_url is "https://a/trace": must be a URL with {trace_id}`,
		"allow_unauthenticated: possibly":                           "allow_unauthenticated",
		"endpoint: localhost:1":                                     "",
		"endpoint: 127.0.0.2:1":                                     "",
		"endpoint: '[::1]:1'":                                       "",
		"{transport: unix, endpoint: /run/view.sock}":               "",
		"{endpoint: '0.0.0.0:1', auth: {authenticator: basicauth}}": "",
		"{endpoint: '0.0.0.0:1', tls: {cert_file: a, key_file: b, client_ca_file: c}}": "",
	})
}

// started is a running extension.
type started struct {
	extension.Extension
	t         *testing.T
	url       string
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs
}

func start(t *testing.T, yaml string, host component.Host) *started {
	t.Helper()
	cfg, err := load(t, yaml)
	require.NoError(t, err)
	if cfg.Directory == "./profiles" {
		cfg.Directory = t.TempDir()
	}
	telemetry := componenttest.NewTelemetry()
	core, logs := observer.New(zap.InfoLevel)
	set := extensiontest.NewNopSettings(NewFactory().Type())
	set.ID = component.NewID(set.ID.Type())
	set.Logger, set.TelemetrySettings.MeterProvider = zap.New(core), telemetry.NewTelemetrySettings().MeterProvider
	e, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), host))
	t.Cleanup(func() {
		for range 2 { // it must be safe after the first time
			require.NoError(t, e.Shutdown(t.Context()))
		}
	})
	entries := logs.FilterMessage("Started profiles page").All()
	require.Len(t, entries, 1)
	return &started{e, t, entries[0].ContextMap()["url"].(string), telemetry, logs}
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

func (s *started) do(method, path string, change func(*http.Request)) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	require.NoError(s.t, err)
	if change != nil {
		change(r)
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(s.t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, errors.Join(err, response.Body.Close()))
	s.t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	return answer{response.StatusCode, response.Header, string(body)}
}

func TestStartLogsTheAddressOfThePage(t *testing.T) {
	s := start(t, "endpoint: localhost:0", componenttest.NewNopHost())
	assert.True(t, strings.HasPrefix(s.url, "http://localhost:"), s.url)
	got := s.do(http.MethodGet, "/", nil)
	assert.Equal(t, http.StatusOK, got.status)
	assert.Contains(t, got.body, "No profiles yet")
	header := got.header
	assert.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self';")
	assert.Contains(t, header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
}

func TestOnlyReadingRequestsOfItsOwnHostAreAnswered_V4(t *testing.T) {
	s := start(t, "{endpoint: 'localhost:0', allowed_hosts: [profiles.example.com]}", componenttest.NewNopHost())
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:" + port: 200, "127.0.0.1:" + port: 200, "[::1]:" + port: 200, "profiles.example.com": 200, "Profiles.Example.com:80": 200,
		"evil.example.com": 421, "localhost.evil.com": 421, "10.1.2.3": 421, "profiles.example.com.": 421,
	} {
		got := s.do(http.MethodGet, "/api/services", func(r *http.Request) { r.Host = host })
		assert.Equal(t, want, got.status, host)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "MOVE"} {
		for _, path := range []string{"/", "/api/profile", "/saveconfig"} {
			got := s.do(method, path, nil)
			assert.Equal(t, http.StatusMethodNotAllowed, got.status, method)
			assert.Equal(t, "GET, HEAD", got.header.Get("Allow"))
		}
	}
	got := s.do(http.MethodHead, "/", nil)
	assert.Equal(t, http.StatusOK, got.status)
	assert.Empty(t, got.body)
	own := start(t, "{endpoint: '127.0.0.3:0'}", componenttest.NewNopHost()).do(http.MethodGet, "/", func(r *http.Request) { r.Host = "127.0.0.3" })
	assert.Equal(t, http.StatusOK, own.status, "the address that the connection has here")
}

func TestQueryAPIIsServedAsThePageIs(t *testing.T) {
	s := start(t, "endpoint: localhost:0", componenttest.NewNopHost())
	const path = "/querier.v1.QuerierService/ProfileTypes"
	ask := func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
		r.Header.Set("Content-Type", "application/json")
	}
	got := s.do(http.MethodPost, path, ask)
	assert.Equal(t, http.StatusOK, got.status, got.body)
	assert.Equal(t, "{}", got.body)
	assert.Equal(t, http.StatusMethodNotAllowed, s.do(http.MethodGet, path, nil).status)
	assert.Equal(t, http.StatusNotImplemented, s.do(http.MethodPost, "/querier.v1.QuerierService/AnalyzeQuery", ask).status)
	got = s.do(http.MethodPost, path, func(r *http.Request) { ask(r); r.Host = "evil.example.com" })
	assert.Equal(t, http.StatusMisdirectedRequest, got.status)
	sized := func(size int, encode func(string) []byte) answer {
		return s.do(http.MethodPost, path, func(r *http.Request) {
			body := encode("{}" + strings.Repeat(" ", size-2))
			ask(r)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			if len(body) < size {
				r.Header.Set("Content-Encoding", "gzip")
			}
		})
	}
	for _, encode := range []func(string) []byte{func(text string) []byte { return []byte(text) }, gzipped} {
		assert.Equal(t, http.StatusOK, sized(64<<10, encode).status)
		got = sized(64<<10+1, encode)
		assert.Equal(t, http.StatusRequestEntityTooLarge, got.status, "not 429, after which clients retry")
		assert.JSONEq(t, `{"code": "invalid_argument", "message": "the body has more than 65536 bytes: select less, or raise max_request_body_size"}`, got.body)
	}
}

// rejecting is an authenticator that rejects all requests.
func gzipped(text string) []byte {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return compressed.Bytes()
}

type rejecting struct {
	component.StartFunc
	component.ShutdownFunc
}

func (rejecting) Authenticate(context.Context, map[string][]string) (context.Context, error) {
	return nil, errors.New("no password")
}

var _ extensionauth.Server = rejecting{}

type hostWith map[component.ID]component.Component

func (h hostWith) GetExtensions() map[component.ID]component.Component { return h }

func TestAuthIsRequired(t *testing.T) {
	s := start(t, "{endpoint: '0.0.0.0:0', auth: {authenticator: basicauth}}", hostWith{component.MustNewID("basicauth"): rejecting{}})
	got := s.do(http.MethodGet, "/", nil)
	assert.Equal(t, http.StatusUnauthorized, got.status)
	assert.NotContains(t, got.body, "Profiles")
}

func TestRequestsAreCounted(t *testing.T) {
	s := start(t, "endpoint: localhost:0", componenttest.NewNopHost())
	counts := func() map[string]int64 {
		got, err := s.telemetry.GetMetric("otelcol_extension_profiles_view_requests")
		require.NoError(t, err)
		counted := map[string]int64{}
		for _, point := range got.Data.(metricdata.Sum[int64]).DataPoints {
			path, _ := point.Attributes.Value("path")
			status, _ := point.Attributes.Value("status")
			counted[path.AsString()+" "+status.AsString()] = point.Value
		}
		return counted
	}
	want := map[string]int64{"other 4xx": 0}
	for _, path := range []string{
		"/", "/api/services", "/api/profile", "/api/timeline", "/select", "/static", "/timeline", "/trace",
		"ProfileTypes", "LabelNames", "LabelValues", "Series", "SelectMergeStacktraces", "SelectMergeSpanProfile", "SelectMergeProfile", "SelectSeries", "Diff", "GetProfileStats",
	} {
		want[path+" 2xx"] = 0
	}
	assert.Equal(t, want, counts())
	s.do(http.MethodPost, "/querier.v1.QuerierService/Diff", nil)
	want["Diff 4xx"] = 1
	for _, path := range []string{"/", "/", "/api/profile", "/trace?id=x", "/none"} {
		s.do(http.MethodGet, path, nil)
	}
	want["/ 2xx"], want["/api/profile 4xx"], want["/trace 3xx"], want["other 4xx"] = 2, 1, 1, 1
	assert.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, counts()) }, time.Minute, time.Millisecond) // they are counted after the response
	metadatatest.AssertEqualExtensionProfilesViewRejectedRequests(t, s.telemetry, []metricdata.DataPoint[int64]{{Attributes: attribute.NewSet(attribute.String("extension", "profiles_view"))}}, metricdatatest.IgnoreTimestamp())
	for _, metric := range []string{"memory", "request_duration"} {
		_, err := s.telemetry.GetMetric("otelcol_extension_profiles_view_" + metric)
		require.NoError(t, err)
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	cfg, err := load(t, "endpoint: "+taken.Addr().String())
	require.NoError(t, err)
	e, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(NewFactory().Type()), cfg)
	require.NoError(t, err)
	require.ErrorContains(t, e.Start(t.Context(), componenttest.NewNopHost()), taken.Addr().String())
	require.NoError(t, e.Shutdown(t.Context()))
}

// TestShutdownDuringQueries: clients leave, and the extension stops, at any point of a query.
func TestShutdownDuringQueries_V8(t *testing.T) {
	dir := t.TempDir()
	writer, err := store.OpenWriter(store.Options{
		Directory: dir, MaxOpen: 1, Format: segment.Proto,
		Failed: func(err error) { assert.NoError(t, err) },
	})
	require.NoError(t, err)
	for range 20 {
		pd := payloadtest.ManyStacks(2000, 0)
		for _, p := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			p.SetTime(pcommon.NewTimestampFromTime(time.Now()))
		}
		require.NoError(t, writer.Append(store.Record{Data: profiletest.Proto(t, pd)}))
	}
	require.NoError(t, writer.Close())
	for range profiletest.Rounds(t, 5, 200) {
		s := start(t, "{endpoint: 'localhost:0', directory: '"+filepath.ToSlash(dir)+"'}", componenttest.NewNopHost())
		var clients sync.WaitGroup
		for i, path := range []string{"/api/profile", "/?type=cpu", "/", "/api/services", "/api/profile", "/api/profile"} {
			clients.Go(func() {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(i)*10*time.Millisecond)
				defer leave()
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
				assert.NoError(t, err)
				if response, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			})
		}
		stopped, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_ = s.Shutdown(stopped) // an error is of connections that were closed
		stop()
		clients.Wait()
		http.DefaultClient.CloseIdleConnections()
		assert.Empty(t, s.logs.FilterMessage("Requests still run at shutdown").All())
	}
}

// TestForeignPagesReadNothing_A6: pages of other sites reach no path, and a link that a person follows reaches pages.
func TestForeignPagesReadNothing_A6(t *testing.T) {
	s := start(t, "endpoint: localhost:0", componenttest.NewNopHost())
	header := func(values ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i, name := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Origin"} {
				if i < len(values) {
					r.Header.Set(name, values[i])
				}
			}
		}
	}
	const rpc = "/querier.v1.QuerierService/ProfileTypes"
	for _, path := range []string{"/", "/?type=cpu", "/trace/00000000000000000000000000000001", "/api/services", "/api/profile", rpc, "/static/x/page.js"} {
		assert.Equal(t, http.StatusForbidden, s.do(http.MethodGet, path, header("cross-site", "no-cors", "image")).status, path)
		assert.Equal(t, http.StatusForbidden, s.do(http.MethodGet, path, header("cross-site", "navigate", "iframe")).status, path)
	}
	assert.Equal(t, http.StatusForbidden, s.do(http.MethodPost, rpc, header("cross-site", "cors", "empty", "https://evil.example")).status)
	for path, status := range map[string]int{"/": http.StatusOK, "/?type=cpu": http.StatusOK, "/api/services": http.StatusForbidden, "/api/profile": http.StatusForbidden} {
		assert.Equal(t, status, s.do(http.MethodGet, path, header("cross-site", "navigate", "document")).status, path)
	}
	assert.Equal(t, http.StatusOK, s.do(http.MethodGet, "/api/services", header("same-origin", "cors", "empty")).status)
	assert.Equal(t, http.StatusOK, s.do(http.MethodGet, "/api/services", header("none", "navigate", "document")).status, "typed by a person")
	assert.Equal(t, http.StatusOK, s.do(http.MethodGet, "/api/services", nil).status, "no browser")
}
