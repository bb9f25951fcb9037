// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/metadatatest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
)

var receiverID = component.MustNewIDWithName("pprof", "test")

const serverYAML = "server: {endpoint: 127.0.0.1:0}\n"

// loadConfig reads a configuration as the collector does, and validates it.
func loadConfig(yaml string) (*Config, error) {
	cfg := createDefaultConfig().(*Config)
	return cfg, profiletest.LoadConfig(yaml, cfg)
}

// testReceiver is a receiver under test with its telemetry and logs.
type testReceiver struct {
	*pprofReceiver
	server    *httpserver.Server // nil if it is not configured, as the others
	scraper   *scrape.Scraper
	t         testing.TB
	client    *http.Client
	telemetry *componenttest.Telemetry
	logs      *observer.ObservedLogs

	stopDrips atomic.Bool // clients that would continue indefinitely stop
}

// newTestReceiver makes a receiver that is not started.
func newTestReceiver(t testing.TB, yaml string, next xconsumer.Profiles) *testReceiver {
	t.Helper()
	cfg, err := loadConfig(yaml)
	require.NoError(t, err)
	observed, telemetry, logs := profiletest.Observe(t)
	set := settings(telemetry)
	set.Logger = observed.Logger
	r, err := newReceiver(set, cfg, budget.New(int64(cfg.MaxInFlight)), next)
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(client.CloseIdleConnections)
	b := &testReceiver{pprofReceiver: r, t: t, client: client, telemetry: telemetry, logs: logs}
	b.server, b.scraper = sectionOf[*httpserver.Server](r), sectionOf[*scrape.Scraper](r)
	return b
}

// sectionOf returns the section of this type, nil if it is not configured.
func sectionOf[T component.Component](r *pprofReceiver) (found T) {
	for _, s := range r.sections {
		if c, ok := s.Component.(T); ok {
			found = c
		}
	}
	return found
}

func settings(telemetry *componenttest.Telemetry) receiver.Settings {
	set := metadatatest.NewSettings(telemetry)
	set.ID = receiverID
	set.BuildInfo = component.BuildInfo{Version: "1.2.3"}
	set.Resource.Attributes().PutStr("service.name", "the-collector")
	set.Resource.Attributes().PutStr("service.instance.id", "instance-1")
	set.Resource.Attributes().PutStr("service.version", "1.2.3")
	return set
}

// startTestReceiver makes a receiver, and runs it until the test ends.
func startTestReceiver(t testing.TB, yaml string, next xconsumer.Profiles) *testReceiver {
	t.Helper()
	b := newTestReceiver(t, yaml, next)
	b.start()
	return b
}

func (b *testReceiver) start() {
	b.t.Helper()
	require.NoError(b.t, b.Start(b.t.Context(), componenttest.NewNopHost()))
	b.t.Cleanup(func() {
		// Shutdown waits for connections that have been dialled and not used.
		b.client.CloseIdleConnections()
		require.NoError(b.t, b.Shutdown(context.Background()))
	})
}

// runFor runs the receiver for a time.
func (b *testReceiver) runFor(d time.Duration) {
	b.t.Helper()
	require.NoError(b.t, b.Start(b.t.Context(), componenttest.NewNopHost()))
	time.Sleep(d)
	require.NoError(b.t, b.Shutdown(b.t.Context()))
}

func (b *testReceiver) url(path string) string {
	return "http://" + b.server.Addr().String() + path
}

// answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

// send makes a request. Headers are name, value, name, value...
func (b *testReceiver) send(method, path string, body io.Reader, headers ...string) (answer, error) {
	request, err := http.NewRequest(method, b.url(path), body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: string(text)}, errors.Join(err, response.Body.Close())
}

// post is send for POST. It may be called from any goroutine. Without a response, the test fails and the
// status is 0.
func (b *testReceiver) post(path string, body []byte, headers ...string) answer {
	b.t.Helper()
	a, err := b.send(http.MethodPost, path, bytes.NewReader(body), headers...)
	assert.NoError(b.t, err)
	return a
}

// push posts a body to /v1/pprof with this query.
func (b *testReceiver) push(query string, body []byte) answer {
	b.t.Helper()
	return b.post("/v1/pprof"+query, body)
}

// sink keeps what it consumes, after checking that it conforms.
type sink struct {
	consumertest.ProfilesSink
	t testing.TB
}

func (s *sink) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	assert.Empty(s.t, conformance.Check(pd).Violations())
	return s.ProfilesSink.ConsumeProfiles(ctx, pd)
}

// only returns the one payload that was consumed.
func (s *sink) only() pprofile.Profiles {
	s.t.Helper()
	all := s.AllProfiles()
	require.Len(s.t, all, 1)
	return all[0]
}

// passedOn returns the payload that a receiver with these keys passes on after a request that it accepts.
func passedOn(t *testing.T, yaml string, send func(b *testReceiver) answer) pprofile.Profiles {
	t.Helper()
	next := &sink{t: t}
	got := send(startTestReceiver(t, serverYAML+yaml, next))
	require.Less(t, got.status, 300, got.body)
	return next.only()
}

// pushed is passedOn for a pprof, with a query.
func pushed(t *testing.T, yaml, query string, p *profile.Profile) pprofile.Profiles {
	t.Helper()
	return passedOn(t, yaml, func(b *testReceiver) answer { return b.push(query, profiletest.Pprof(t, p)) })
}

// counts are the values of a counter, by one of its attributes.
func (b *testReceiver) counts(metric, by string) map[string]int64 {
	b.t.Helper()
	return profiletest.MetricsBy(b.t, b.telemetry, metric, by)[""]
}

// explode is the function that panics in tests.
func explode() { panic("out of the blue") }

// assertPanicLogged checks that a panic was logged once, with the stack of the goroutine that panicked.
func (b *testReceiver) assertPanicLogged() {
	b.t.Helper()
	logged := b.logs.FilterMessage("Panic while processing a profile").All()
	require.Len(b.t, logged, 1)
	assert.Contains(b.t, logged[0].ContextMap()["stack"], "pprofreceiver.explode")
}

// legacyHeap is a heap profile from before protobuf.
const legacyHeap = "heap profile: 1: 2048 [3: 8192] @ heap_v2/524288\n 1: 2048 [3: 8192] @ 0x401000 0x402000\n"
