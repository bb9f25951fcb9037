// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplimitextension

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

const tooMuch = "otlp_limit: the message takes too much memory, more than max_message_memory (1MiB)"

// newLimiter returns an extension with the smallest limit, and its log.
func newLimiter(t *testing.T) (component.Component, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	set := extensiontest.NewNopSettings(NewFactory().Type())
	set.Logger = zap.New(core)
	limiter, err := NewFactory().Create(t.Context(), set, &Config{MaxMessageMemory: minMemory})
	require.NoError(t, err)
	return limiter, logs
}

// large has 10,000 samples without content: 20 KB of OTLP, 1.2 MB in memory.
func large() pprofile.Profiles {
	pd := pprofile.NewProfiles()
	samples := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples()
	for range 10_000 {
		samples.AppendEmpty()
	}
	return pd
}

// nested has a value in this many lists.
func nested(lists int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	value := pd.ResourceProfiles().AppendEmpty().Resource().Attributes().PutEmpty("key")
	for range lists {
		value = value.SetEmptySlice().AppendEmpty()
	}
	return pd
}

// profilesServer counts the samples of its requests.
type profilesServer struct {
	pprofileotlp.UnimplementedGRPCServer
	samples int
}

func (s *profilesServer) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	s.samples += request.Profiles().SampleCount()
	return pprofileotlp.NewExportResponse(), nil
}

// logsServer accepts everything.
type logsServer struct {
	plogotlp.UnimplementedGRPCServer
}

func (*logsServer) Export(context.Context, plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), nil
}

func TestGRPCMessagesAreCheckedBeforeTheyAreDecoded(t *testing.T) {
	limiter, logs := newLimiter(t)
	options, err := limiter.(extensionmiddleware.GRPCServer).GetGRPCServerOptions(t.Context())
	require.NoError(t, err)
	server, received := grpc.NewServer(options...), &profilesServer{}
	pprofileotlp.RegisterGRPCServer(server, received)
	plogotlp.RegisterGRPCServer(server, &logsServer{})
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		require.NoError(t, <-ended)
	}()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, connection.Close()) }()
	client := pprofileotlp.NewGRPCClient(connection)
	send := func(pd pprofile.Profiles) error {
		_, err := client.Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(pd))
		return err
	}

	small := profiletest.Small(t)
	require.NoError(t, send(small))
	assert.Equal(t, small.SampleCount(), received.samples)
	err = send(large())
	assert.Equal(t, codes.Internal, status.Code(err))
	require.ErrorContains(t, err, tooMuch)
	require.ErrorContains(t, send(nested(100)), "lists in attribute values nest deeper than 64 levels")
	assert.Equal(t, small.SampleCount(), received.samples)
	assert.Equal(t, 2, logs.FilterMessage("Rejected OTLP message").Len())

	records := plogotlp.NewExportRequest()
	all := records.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range 10_000 {
		all.AppendEmpty()
	}
	_, err = plogotlp.NewGRPCClient(connection).Export(t.Context(), records)
	require.NoError(t, err, "messages of other signals are not checked")
}

func TestHTTPBodiesAreCheckedWhileTheyAreRead(t *testing.T) {
	limiter, logs := newLimiter(t)
	wrap, err := limiter.(extensionmiddleware.HTTPServer).GetHTTPHandler(t.Context())
	require.NoError(t, err)
	var body []byte
	var readErr error
	handler, err := wrap(t.Context(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, readErr = io.ReadAll(r.Body)
	}))
	require.NoError(t, err)
	send := func(path, contentType string, message []byte) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(message))
		request.Header.Set("Content-Type", contentType)
		handler.ServeHTTP(httptest.NewRecorder(), request)
	}
	const path, protobuf, json = "/v1development/profiles", "application/x-protobuf", "application/json"
	messages := func(pd pprofile.Profiles) (protobuf, json []byte) {
		protobuf = profiletest.Proto(t, pd)
		json = profiletest.JSON(t, pd)
		return protobuf, json
	}

	smallProtobuf, smallJSON := messages(profiletest.Small(t))
	send(path, protobuf, smallProtobuf)
	require.NoError(t, readErr)
	assert.Equal(t, smallProtobuf, body)
	send(path, json, smallJSON)
	require.NoError(t, readErr)
	assert.JSONEq(t, string(smallJSON), string(body))

	largeProtobuf, largeJSON := messages(large())
	send(path, protobuf, largeProtobuf)
	require.EqualError(t, readErr, tooMuch)
	send(path, "Application/JSON; charset=utf-8", largeJSON)
	require.EqualError(t, readErr, tooMuch)
	deep, deepJSON := messages(nested(100))
	send(path, protobuf, deep)
	require.EqualError(t, readErr, "otlp_limit: lists in attribute values nest deeper than 64 levels")
	send(path, json, deepJSON)
	require.EqualError(t, readErr, "otlp_limit: lists in attribute values nest deeper than 64 levels")
	send(path, protobuf, []byte{0x0f})
	require.EqualError(t, readErr, "otlp_limit: the message is not OTLP protobuf")
	assert.Equal(t, 5, logs.FilterMessage("Rejected OTLP message").Len())

	send("/v1/logs", protobuf, largeProtobuf)
	require.NoError(t, readErr, "messages of other signals are not checked")
}

func TestConfigIsChecked(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, cfg.Validate())
	cfg.MaxMessageMemory = 100 * config.KiB
	require.EqualError(t, cfg.Validate(), fmt.Sprintf("max_message_memory is 100KiB: must be at least 1MiB and at most 1TiB; "+
		"percentages are of the memory limit, which is %d MiB", config.MemoryLimit()/config.MiB))
}
