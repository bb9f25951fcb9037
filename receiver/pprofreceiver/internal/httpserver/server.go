// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/httpguard"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
)

const (
	// inFlightWait is how long a request waits for others to release bytes.
	inFlightWait = time.Second

	// drainTimeout is how long requests may take to finish at shutdown. It exceeds the
	// longest window with acknowledge: on_flush.
	drainTimeout = 10 * time.Second

	// abortTimeout is how long handlers may take to return after that, with their
	// connections closed and contexts cancelled.
	abortTimeout = 2 * time.Second

	otherPath = "other" // in metrics

	reasonUnauthorized = "unauthorized"
	reasonRetryable    = "pipeline_retryable"
)

// contentEncodings are the supported values of Content-Encoding, as
// compression_algorithms names them: "" means no compression.
var contentEncodings = []string{"", "gzip", "zstd"}

// Protocol is the protocol of one path.
type Protocol struct {
	Path    string
	Success int  // status
	Connect bool // responses are those of the Connect protocol

	// Read reads the profiles of a request, without decompressing or translating them.
	Read func(r *Request) (Push, error)
}

// protocols are all of the server.
var protocols = []Protocol{
	{Path: PprofPath, Success: http.StatusNoContent, Read: readPprof},
	{Path: IngestPath, Success: http.StatusOK, Read: readIngest},
	{Path: PushPath, Success: http.StatusOK, Connect: true, Read: readPush},
	{Path: DatadogPath, Success: http.StatusAccepted, Read: readDatadog},
}

// Push is the content of a request.
type Push struct {
	Profiles []Profile
	Skipped  map[string]int // parts that are not profiles, by the attribute attachment
	Note     string         // the text of a successful response, for a person; may be empty
}

// Profile is one profile of a request. Its Data may be compressed.
type Profile struct {
	Name string // in messages, for example: attachment "cpu.pprof"
	ingest.Payload
}

// Server serves protocols from Start to Shutdown.
type Server struct {
	// Listen opens the endpoint. Tests replace it before Start, to serve a network in memory.
	Listen func(context.Context) (net.Listener, error)

	config    Config
	settings  section.Settings
	protocols []Protocol
	paths     []string // of the protocols
	ingester  *ingest.Ingester
	logger    *zap.Logger
	warnings  *zap.Logger // the first of each message in a minute

	drainTimeout, abortTimeout time.Duration

	listener net.Listener
	http     *http.Server
	cancel   context.CancelFunc // of all requests
	serving  sync.WaitGroup
	handlers atomic.Int64 // running
}

// New returns a server that passes profiles to the ingester.
func New(config Config, set section.Settings, ingester *ingest.Ingester) *Server {
	// A body is not larger than its content, except that compression makes random bytes a
	// little larger.
	config.HTTP.MaxRequestBodySize = min(config.HTTP.MaxRequestBodySize, int64(config.MaxDecompressedSize+config.MaxDecompressedSize/1024+1024))
	if len(config.HTTP.CompressionAlgorithms) == 0 {
		config.HTTP.CompressionAlgorithms = contentEncodings
	}
	return &Server{
		Listen:    config.HTTP.ToListener,
		config:    config,
		settings:  set,
		protocols: protocols,
		ingester:  ingester,
		logger:    set.Telemetry.Logger,
		warnings: set.Telemetry.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
		})),
		drainTimeout: drainTimeout,
		abortTimeout: abortTimeout,
	}
}

// Start listens and serves. After an error nothing is left running.
func (s *Server) Start(ctx context.Context, host component.Host) error {
	mux := http.NewServeMux()
	for _, p := range s.protocols {
		mux.Handle(p.Path, s.handler(p))
		s.paths = append(s.paths, p.Path)
	}
	mux.Handle("/", s.handler(Protocol{Path: otherPath}))

	config := s.config.HTTP
	config.CompressionAlgorithms = []string{} // decompression happens here, within max_in_flight
	var err error
	s.http, err = config.ToServer(ctx, host.GetExtensions(), s.settings.Telemetry, httpguard.RejectForeignPages(mux, nil, s.rejectForeign), confighttp.WithErrorHandler(s.rejectEarly))
	if err != nil {
		return err
	}
	s.listener, err = s.Listen(ctx)
	if err != nil {
		return fmt.Errorf("listening on endpoint %q: %w", config.NetAddr.Endpoint, err)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	s.logger.Info("Started pprof HTTP server", zap.Stringer("endpoint", s.listener.Addr()), zap.Strings("paths", s.paths))
	s.serving.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(fmt.Errorf("server: serving endpoint %q: %w", config.NetAddr.Endpoint, err)))
		}
	})
	return nil
}

// Shutdown stops listening and lets running requests finish. It closes the connections
// of those that take too long: their clients receive no response and retry.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.cancel == nil { // not started
		return nil
	}
	defer s.cancel()
	draining, stop := context.WithTimeout(ctx, s.drainTimeout)
	defer stop()
	err := s.http.Shutdown(draining)
	if err != nil {
		s.logger.Warn("Closing connections still open at the shutdown deadline", zap.Int64("requests", s.handlers.Load()))
		s.cancel()
		err = s.http.Close()
		for deadline := time.Now().Add(s.abortTimeout); s.handlers.Load() > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if n := s.handlers.Load(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%d requests still running after shutdown", n))
		}
	}
	s.serving.Wait()
	return err
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Handler serves all paths, after Start.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// handler answers the requests of one protocol.
func (s *Server) handler(p Protocol) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handlers.Add(1)
		defer s.handlers.Add(-1)
		if limit := s.config.HTTP.WriteTimeout; limit > 0 { // later, no response reaches the client
			ctx, cancel := context.WithTimeout(r.Context(), limit*9/10)
			defer cancel()
			r = r.WithContext(ctx)
		}
		if err := s.serve(p, w, r); err != nil {
			rejection, ended := rejectionOf(err), r.Context().Err()
			switch {
			case rejection.reason != reasonRetryable || ended == nil:
			case errors.Is(ended, context.DeadlineExceeded):
				rejection.message = "the pipeline did not accept the profile within nine tenths of write_timeout, retry"
			default:
				rejection.message = "the client disconnected, or the receiver stopped, before the pipeline accepted the profile"
			}
			s.reject(w, r, p, rejection)
			return
		}
		s.countRequest(r.Context(), p.Path, p.Success)
	})
}

// serve writes the response of success, or returns an error and writes nothing.
func (s *Server) serve(p Protocol, w http.ResponseWriter, r *http.Request) (err error) {
	defer ingest.Recover(s.logger, &err, zap.String("endpoint", p.Path))
	if p.Read == nil {
		return &Rejection{status: http.StatusNotFound, reason: "not_found", message: "no such endpoint, want one of " + strings.Join(s.paths, ", ")}
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return &Rejection{status: http.StatusMethodNotAllowed, reason: "method", message: fmt.Sprintf("method is %s: must be POST", r.Method)}
	}
	if limit := s.config.HTTP.MaxRequestBodySize; r.ContentLength > limit {
		return &http.MaxBytesError{Limit: limit}
	}
	request := s.newRequest(r)
	if encodings := s.config.HTTP.CompressionAlgorithms; !slices.Contains(encodings, request.encoding) {
		return unsupported("Content-Encoding is %q: must be one of %q", request.encoding, encodings)
	}
	defer request.lease.Release()
	push, err := s.ingest(request, p)
	if err != nil && request.withoutBreaks && rejectionOf(err).status == http.StatusBadRequest {
		return malformed("%v%s", err, curlHint)
	}
	if err != nil {
		return err
	}
	for attachment, n := range push.Skipped {
		s.settings.Metrics.ReceiverPprofSkippedAttachments.Add(r.Context(), int64(n), s.settings.Metrics.Attributes(
			attribute.String("endpoint", p.Path), attribute.String("attachment", attachment)))
	}
	switch {
	case !p.Connect && push.Note == "":
		w.WriteHeader(p.Success)
	case !p.Connect:
		writeResponse(w, p.Success, "text/plain; charset=utf-8", []byte(push.Note+"\n"))
	case request.MediaType == mediaTypeJSON:
		writeResponse(w, p.Success, mediaTypeJSON, []byte("{}"))
	default:
		writeResponse(w, p.Success, request.MediaType, nil)
	}
	return nil
}

// reject answers with a rejection. It logs neither query nor headers, which may hold
// secrets.
func (s *Server) reject(w http.ResponseWriter, r *http.Request, p Protocol, rejection *Rejection) {
	message := rejection.message
	if rejection.reason == reasonUnauthorized { // of an authenticator, which may quote credentials
		message = http.StatusText(rejection.status)
	}
	sender, _, _ := net.SplitHostPort(r.RemoteAddr)
	fields := []zap.Field{zap.String("endpoint", p.Path), zap.String("sender", sender),
		zap.Int("status", rejection.status), zap.String("reason", rejection.reason), zap.String("error", message)}
	s.logger.Debug("Rejected request", fields...)
	s.warnings.Warn("Rejected requests: "+rejection.reason, fields...)
	s.countRejection(r.Context(), p.Path, rejection)
	s.countRequest(r.Context(), p.Path, rejection.write(w, r, p.Connect))
}

// rejectEarly answers requests that confighttp rejects, for example without valid
// credentials.
func (s *Server) rejectEarly(w http.ResponseWriter, r *http.Request, message string, status int) {
	reason := "http_server"
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		reason = reasonUnauthorized
	}
	s.reject(w, r, s.protocolOf(r), &Rejection{status: status, reason: reason, message: message})
}

// rejectForeign answers requests that a page of another site makes a browser send.
func (s *Server) rejectForeign(w http.ResponseWriter, r *http.Request) {
	s.reject(w, r, s.protocolOf(r), &Rejection{status: http.StatusForbidden, reason: "foreign_page", message: httpguard.ForeignPage})
}

func (s *Server) protocolOf(r *http.Request) Protocol {
	if i := slices.IndexFunc(s.protocols, func(p Protocol) bool { return p.Path == r.URL.Path }); i >= 0 {
		return s.protocols[i]
	}
	return Protocol{Path: otherPath}
}

func (s *Server) countRequest(ctx context.Context, path string, status int) {
	s.settings.Metrics.ReceiverPprofRequests.Add(ctx, 1, s.settings.Metrics.Attributes(
		attribute.String("endpoint", path), attribute.Int("http.response.status_code", status)))
}

func (s *Server) countRejection(ctx context.Context, path string, rejection *Rejection) {
	s.settings.Metrics.ReceiverPprofRejectedRequests.Add(ctx, 1, s.settings.Metrics.Attributes(
		attribute.String("endpoint", path), attribute.String("reason", rejection.reason)))
}
