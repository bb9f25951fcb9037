// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplimitextension

import (
	"bytes"
	"context"
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
	samples *int
}

func (s *profilesServer) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	*s.samples += request.Profiles().SampleCount()
	return pprofileotlp.NewExportResponse(), nil
}

// logsServer accepts everything.
type logsServer struct {
	plogotlp.UnimplementedGRPCServer
}

func (*logsServer) Export(context.Context, plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	return plogotlp.NewExportResponse(), nil
}

// grpcSender returns a function that sends payloads to a gRPC server with the limiter, which counts their samples in received.
func grpcSender(t *testing.T, limiter component.Component, received *int) func(pprofile.Profiles) error {
	options, err := limiter.(extensionmiddleware.GRPCServer).GetGRPCServerOptions(t.Context())
	require.NoError(t, err)
	server := grpc.NewServer(options...)
	pprofileotlp.RegisterGRPCServer(server, &profilesServer{samples: received})
	plogotlp.RegisterGRPCServer(server, &logsServer{})
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, connection.Close())
		server.Stop()
		assert.NoError(t, <-ended)
	})

	records := plogotlp.NewExportRequest()
	all := records.Logs().ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for range 10_000 {
		all.AppendEmpty()
	}
	_, err = plogotlp.NewGRPCClient(connection).Export(t.Context(), records)
	require.NoError(t, err, "messages of other signals are not checked")

	client := pprofileotlp.NewGRPCClient(connection)
	return func(pd pprofile.Profiles) error {
		_, err := client.Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(pd))
		if err != nil {
			assert.Equal(t, codes.Internal, status.Code(err))
		}
		return err
	}
}

// httpSender returns a function that sends messages to an HTTP server with the limiter.
func httpSender(t *testing.T, limiter component.Component) func(path, contentType string, message []byte) error {
	wrap, err := limiter.(extensionmiddleware.HTTPServer).GetHTTPHandler(t.Context())
	require.NoError(t, err)
	var body []byte
	var readErr error
	handler, err := wrap(t.Context(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, readErr = io.ReadAll(r.Body)
	}))
	require.NoError(t, err)
	return func(path, contentType string, message []byte) error {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(message))
		request.Header.Set("Content-Type", contentType)
		handler.ServeHTTP(httptest.NewRecorder(), request)
		if readErr == nil {
			assert.Equal(t, message, body)
		}
		return readErr
	}
}

func TestMessagesAreCheckedBeforeTheyAreDecoded(t *testing.T) {
	limiter, logs := newLimiter(t)
	received := 0
	sendGRPC, sendHTTP := grpcSender(t, limiter, &received), httpSender(t, limiter)
	const path, protobuf = "/v1development/profiles", "application/x-protobuf"
	for name, send := range map[string]func(pprofile.Profiles) error{
		"gRPC": sendGRPC,
		"HTTP": func(pd pprofile.Profiles) error { return sendHTTP(path, protobuf, profiletest.Proto(t, pd)) },
		"JSON": func(pd pprofile.Profiles) error {
			return sendHTTP(path, "Application/JSON; charset=utf-8", profiletest.JSON(t, pd))
		},
	} {
		require.NoError(t, send(profiletest.Small(t)), name)
		require.ErrorContains(t, send(large()), tooMuch, name)
		require.ErrorContains(t, send(nested(100)), "otlp_limit: lists in attribute values nest deeper than 64 levels", name)
	}
	assert.Equal(t, profiletest.Small(t).SampleCount(), received)
	require.EqualError(t, sendHTTP(path, protobuf, []byte{0x0f}), "otlp_limit: the message is not OTLP protobuf")
	assert.Equal(t, 3*2+1, logs.FilterMessage("Rejected OTLP message").Len())
	require.NoError(t, sendHTTP("/v1/logs", protobuf, profiletest.Proto(t, large())), "messages of other signals are not checked")
}

func TestWrongConfigurationsAreRejected_D3(t *testing.T) {
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{}":                         "",
		"max_message_memory: 100KiB": "max_message_memory is 100KiB: must be at least 1MiB and at most 1TiB",
		"max_memory: 1MiB":           "unknown key max_memory",
	})
}
