// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/exporter"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// grpcClient sends series to Parca.
type grpcClient struct {
	connection *grpc.ClientConn
	timeout    time.Duration
}

const methodWriteRaw = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"

// newGRPCClient makes the client of the settings for HTTP that gRPC has as well.
func newGRPCClient(ctx context.Context, config *Config, host component.Host, set exporter.Settings) (*grpcClient, error) {
	endpoint, err := url.Parse(config.HTTP.Endpoint)
	if err != nil {
		return nil, err
	}
	secure := endpoint.Scheme == "https"
	tls, port := config.HTTP.TLS, "443"
	if !secure {
		tls.Insecure, port = true, "80"
	}
	client := configgrpc.ClientConfig{
		Endpoint:        net.JoinHostPort(endpoint.Hostname(), cmp.Or(endpoint.Port(), port)),
		TLS:             tls,
		Compression:     config.HTTP.Compression,
		Headers:         config.HTTP.Headers,
		UserAgent:       userAgent(set),
		Auth:            config.HTTP.Auth,
		Middlewares:     config.HTTP.Middlewares,
		ReadBufferSize:  config.HTTP.ReadBufferSize,
		WriteBufferSize: config.HTTP.WriteBufferSize,
	}
	connection, err := client.ToClientConn(ctx, host.GetExtensions(), set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &grpcClient{connection: connection, timeout: config.HTTP.Timeout}, nil
}

func (c *grpcClient) close() error { return c.connection.Close() }

func (c *grpcClient) send(ctx context.Context, s *series) *failure {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var request emptypb.Empty // all fields are unknown to it
	request.ProtoReflect().SetUnknown(writeRawRequest(s))
	if err := c.connection.Invoke(ctx, methodWriteRaw, &request, &emptypb.Empty{}); err != nil {
		return newGRPCFailure(status.Convert(err))
	}
	return nil
}

// newGRPCFailure says what a status means, as for the OTLP exporter.
func newGRPCFailure(s *status.Status) *failure {
	failed := &failure{error: fmt.Errorf("the server returned %s: %s", s.Code(), s.Message())}
	var retryInfo *errdetails.RetryInfo
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			retryInfo = info
		}
	}
	failed.delay = retryInfo.GetRetryDelay().AsDuration()
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded, codes.Aborted, codes.OutOfRange, codes.Unavailable, codes.DataLoss:
		failed.ends = true
	case codes.ResourceExhausted:
		// Without a delay, the message is too large.
		if failed.ends = retryInfo != nil; !failed.ends {
			failed.reason = reasonTooLarge
		}
	case codes.Unauthenticated, codes.PermissionDenied:
		failed.reason = reasonUnauthorized
	case codes.InvalidArgument, codes.FailedPrecondition:
		failed.reason = reasonInvalid
	default:
		failed.reason = reasonOther
	}
	return failed
}
