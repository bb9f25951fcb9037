// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package otlplimitextension

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// limiter checks messages for the servers that name it in their middlewares.
type limiter struct {
	component.StartFunc
	component.ShutdownFunc

	limit  int64 // bytes of a decoded message
	logger *zap.Logger
}

var (
	_ extensionmiddleware.HTTPServer = (*limiter)(nil)
	_ extensionmiddleware.GRPCServer = (*limiter)(nil)
)

// GetHTTPHandler checks the body while the receiver reads it, which responds with 400 to the error.
func (l *limiter) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // as the receiver does
			switch {
			case !strings.HasSuffix(r.URL.Path, "/profiles"):
			case mediaType == "application/x-protobuf":
				r.Body = &body{ReadCloser: r.Body, meter: &wire.Meter{Limit: l.limit}, limiter: l}
			case mediaType == "application/json":
				r.Body = &body{ReadCloser: r.Body, meter: &wire.JSONMeter{Limit: l.limit}, limiter: l}
			}
			next.ServeHTTP(w, r) // it rejects other types
		}), nil
	}, nil
}

// body is one that a meter reads, too.
type body struct {
	io.ReadCloser
	meter   io.Writer
	limiter *limiter
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if _, meterErr := b.meter.Write(p[:n]); meterErr != nil {
		return 0, b.limiter.reject(meterErr)
	}
	return n, err
}

// GetGRPCServerOptions returns a codec that checks messages before it decodes them. gRPC responds with Internal to
// its errors, after which senders do not retry.
func (l *limiter) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	return []grpc.ServerOption{grpc.ForceServerCodecV2(&codec{CodecV2: encoding.GetCodecV2(proto.Name), limiter: l})}, nil
}

type codec struct {
	encoding.CodecV2
	limiter *limiter
}

// profilesRequest is the name of the type of OTLP requests in pdata, which is internal.
const profilesRequest = "ExportProfilesServiceRequest"

func (c *codec) Unmarshal(data mem.BufferSlice, v any) error {
	if t := reflect.TypeOf(v); t.Kind() == reflect.Pointer && t.Elem().Name() == profilesRequest {
		meter := wire.Meter{Limit: c.limiter.limit}
		for _, buffer := range data {
			if _, err := meter.Write(buffer.ReadOnlyData()); err != nil {
				return c.limiter.reject(err)
			}
		}
	}
	return c.CodecV2.Unmarshal(data, v)
}

// reject logs the error of a message, and returns it for the sender.
func (l *limiter) reject(err error) error {
	if errors.Is(err, wire.ErrLimit) {
		err = fmt.Errorf("%w, more than max_message_memory (%v)", err, config.Size(l.limit))
	}
	l.logger.Warn("Rejected OTLP message", zap.Error(err))
	return fmt.Errorf("otlp_limit: %w", err)
}
