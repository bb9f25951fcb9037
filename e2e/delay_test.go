// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// busy is a backend that asks its first client to come back after a delay, over HTTP or gRPC.
type busy struct {
	pprofileotlp.UnimplementedGRPCServer

	mu    sync.Mutex
	asked []time.Time
}

const busyFor = 2 * time.Second

// ask reports whether this is the first request.
func (b *busy) ask() (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, time.Now())
	return len(b.asked) == 1
}

func (b *busy) requests() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked)
}

func (b *busy) Export(context.Context, pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	if !b.ask() {
		return pprofileotlp.NewExportResponse(), nil
	}
	s, err := status.New(codes.ResourceExhausted, "busy").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(busyFor)})
	if err != nil {
		return pprofileotlp.NewExportResponse(), err
	}
	return pprofileotlp.NewExportResponse(), s.Err()
}

func (b *busy) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if b.ask() {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// serveBusy returns a busy backend, and its address with a scheme if it has one.
func serveBusy(t *testing.T, overHTTP bool) (b *busy, address string) {
	t.Helper()
	b = &busy{}
	if overHTTP {
		server := httptest.NewServer(b)
		t.Cleanup(server.Close)
		return b, server.URL
	}
	server := grpc.NewServer()
	pprofileotlp.RegisterGRPCServer(server, b)
	listener, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return b, listener.Addr().String()
}

// TestBackendIsNotAskedBeforeItsDelay_A7 runs the shipped configurations whose backoff is shorter than the delay that
// their backend asks for.
func TestBackendIsNotAskedBeforeItsDelay_A7(t *testing.T) {
	parallel(t)
	short := func(of string) []string {
		return append(retries(of), "--set="+of+".retry_on_failure.randomization_factor=0")
	}
	for config, test := range map[string]struct {
		overHTTP bool
		env      env
		args     []string
	}{
		"sidecar.yaml":            {args: quick["sidecar.yaml"]},
		"gateway.yaml":            {env: env{"EXPORTER": "otlp_grpc"}, args: short("processors.profiles_dedup")},
		"auth.yaml":               {overHTTP: true, env: env{"EXPORTER": "otlp_http"}, args: short("processors.profiles_dedup")},
		"backends/otlp.yaml":      {args: short("processors.profiles_dedup")},
		"backends/pyroscope.yaml": {overHTTP: true, args: short("processors.profiles_dedup")},
	} {
		t.Run(config, func(t *testing.T) {
			parallel(t)
			b, address := serveBusy(t, test.overHTTP)
			variables := env{
				"DATA_DIR": t.TempDir(), "WINDOW": "200ms", "GATEWAY_ENDPOINT": address, "BACKEND_ENDPOINT": address,
				"TOKEN_FILE": profiletest.WriteFile(t, "token", []byte("s3cret\n")),
			}
			for _, listen := range []string{"PPROF_LISTEN", "OTLP_GRPC_LISTEN", "OTLP_HTTP_LISTEN"} {
				variables[listen] = freeAddress(t)
			}
			maps.Copy(variables, test.env)
			m := runConfig(t, program(t), config, variables, test.args...)
			if config == "gateway.yaml" {
				connection, err := grpc.NewClient(variables["OTLP_GRPC_LISTEN"], grpc.WithTransportCredentials(insecure.NewCredentials()))
				require.NoError(t, err)
				defer func() { _ = connection.Close() }()
				_, err = pprofileotlp.NewGRPCClient(connection).Export(t.Context(), pprofileotlp.NewExportRequestFromProfiles(profiletest.Small(t)))
				require.NoError(t, err)
			} else {
				got, err := ask(http.MethodPost, m.url+"/v1/pprof?service.name=checkout", numbered(t, 7), "Authorization", "Bearer s3cret")
				require.NoError(t, err)
				require.Equal(t, http.StatusNoContent, got.status)
			}
			m.await(t, "a second request", func() bool { return len(b.requests()) > 1 })
			asked := b.requests()
			assert.GreaterOrEqual(t, asked[1].Sub(asked[0]), busyFor, "%v", asked)
			m.stop(t)
		})
	}
}
