// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

const (
	// budgetWait is how long a request waits for others to give bytes back.
	budgetWait = time.Second

	// drainTime is how long requests in flight may take to end at shutdown. It
	// is longer than the longest window with acknowledge: on_flush.
	drainTime = 10 * time.Second

	// abortTime is how long handlers may take to return after that, when their
	// connections are closed and their contexts cancelled.
	abortTime = 2 * time.Second

	endpointOther = "other"
)

// endpoint is a path that takes POST requests. serve either writes the answer
// of success, or returns an error and has written nothing.
type endpoint struct {
	path    string
	success int // the status that serve writes
	serve   func(w http.ResponseWriter, r *http.Request) error

	// refuse writes a refusal and returns the status that it wrote: writeStatus where
	// it is nil.
	refuse func(w http.ResponseWriter, r *http.Request, answer *refusal) int
}

// server receives pushes. It has all that its endpoints share.
type server struct {
	config             ServerConfig
	resourceAttributes map[string]string
	ignoredParameters  []string // query parameters that belong to authentication
	encodings          []string
	bodyLimit          int64 // bytes of a body as it arrives
	payloadLimit       int   // bytes of a payload, decompressed
	budget             *ingest.InFlight
	intake             *ingest.Ingester
	settings           component.TelemetrySettings
	telemetry          *telemetry
	endpoints          []endpoint

	drainTime time.Duration
	abortTime time.Duration

	listener net.Listener
	http     *http.Server
	cancel   context.CancelFunc // of all requests
	serving  sync.WaitGroup
	handlers handlerCount
}

func newServer(config ServerConfig, resourceAttributes map[string]string, in *ingest.Ingester, settings component.TelemetrySettings, telemetry *telemetry) *server {
	s := &server{
		config:             config,
		resourceAttributes: resourceAttributes,
		encodings:          config.HTTP.CompressionAlgorithms,
		// What arrives is not larger than what it becomes, but for what an
		// incompressible payload gains.
		bodyLimit:    min(config.HTTP.MaxRequestBodySize, int64(config.MaxDecompressedSize+config.MaxDecompressedSize/1024)+1024),
		payloadLimit: int(config.MaxDecompressedSize),
		budget:       ingest.NewInFlight(int64(config.MaxInFlight), budgetWait),
		intake:       in,
		settings:     settings,
		telemetry:    telemetry,
		drainTime:    drainTime,
		abortTime:    abortTime,
	}
	if len(s.encodings) == 0 {
		s.encodings = contentEncodings
	}
	if auth := config.HTTP.Auth.Get(); auth != nil {
		s.ignoredParameters = auth.RequestParameters
	}
	s.endpoints = []endpoint{
		{path: pushPath, success: http.StatusNoContent, serve: s.push},
		{path: ingestPath, success: http.StatusOK, serve: s.ingest},
		{path: connectPath, success: http.StatusOK, serve: s.connectPush, refuse: writeConnectError},
		{path: datadogPath, success: http.StatusAccepted, serve: s.datadog},
	}
	return s
}

// start listens and serves. On an error nothing is left running.
func (s *server) start(ctx context.Context, host component.Host) error {
	mux := http.NewServeMux()
	for _, e := range s.endpoints {
		mux.Handle(e.path, s.handler(e))
	}
	mux.Handle("/", s.handler(endpoint{path: endpointOther, serve: s.notFound}))

	httpConfig := s.config.HTTP
	httpConfig.MaxRequestBodySize = s.bodyLimit
	// None: bodies are decompressed here, within the budget.
	httpConfig.CompressionAlgorithms = []string{}
	var err error
	s.http, err = httpConfig.ToServer(ctx, host.GetExtensions(), s.settings, mux, confighttp.WithErrorHandler(s.refuseEarly))
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	s.listener, err = httpConfig.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("server: listening on endpoint %q: %w", httpConfig.NetAddr.Endpoint, err)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.http.BaseContext = func(net.Listener) context.Context { return base }
	s.settings.Logger.Info("receiving pprof over HTTP", zap.Stringer("endpoint", s.listener.Addr()))
	s.serving.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(fmt.Errorf("server: serving endpoint %q: %w", httpConfig.NetAddr.Endpoint, err)))
		}
	})
	return nil
}

// shutdown stops listening, lets the requests in flight end, and cuts off those
// that take too long: they have no answer then, and will be sent again.
func (s *server) shutdown(ctx context.Context) error {
	if s.cancel == nil { // not started
		return nil
	}
	defer s.cancel()
	draining, stop := context.WithTimeout(ctx, s.drainTime)
	defer stop()
	err := s.http.Shutdown(draining)
	if err != nil {
		s.settings.Logger.Warn("cutting off requests that did not end in time", zap.Int("requests", s.handlers.count()))
		s.cancel()
		err = s.http.Close()
		if !s.handlers.wait(s.abortTime) {
			err = errors.Join(err, fmt.Errorf("server: %d requests did not end", s.handlers.count()))
		}
	}
	s.serving.Wait()
	return err
}

// handler serves one endpoint: it lets only POST pass, and turns errors and panics
// into answers.
func (s *server) handler(e endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handlers.enter()
		defer s.handlers.leave()
		defer func() {
			switch fault := recover(); fault {
			case nil:
			case http.ErrAbortHandler:
				panic(fault)
			default:
				s.settings.Logger.Error("panic while handling a request", zap.String("endpoint", e.path), zap.Any("panic", fault), zap.Stack("stack"))
				s.refuse(w, r, e, &refusal{status: http.StatusInternalServerError, reason: reasonPanic, message: "internal error"})
			}
		}()
		if err := s.serve(e, w, r); err != nil {
			s.refuse(w, r, e, refusalOf(err))
			return
		}
		s.count(r.Context(), e.path, e.success)
	})
}

func (s *server) serve(e endpoint, w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost && e.path != endpointOther {
		w.Header().Set("Allow", http.MethodPost)
		return &refusal{status: http.StatusMethodNotAllowed, reason: reasonMethod, message: fmt.Sprintf("method %s, want POST", r.Method)}
	}
	return e.serve(w, r)
}

// refuse answers with a refusal. Neither the query nor headers are logged: they
// may hold secrets.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, e endpoint, answer *refusal) {
	s.settings.Logger.Debug("request refused", zap.String("endpoint", e.path), zap.Int("status", answer.status), zap.String("reason", answer.message))
	s.countRefusal(r.Context(), e.path, answer)
	write := e.refuse
	if write == nil {
		write = writeStatus
	}
	s.count(r.Context(), e.path, write(w, r, answer))
}

// refuseEarly answers what confighttp refuses itself, such as a request without
// the credentials that are wanted.
func (s *server) refuseEarly(w http.ResponseWriter, r *http.Request, message string, status int) {
	to := endpoint{path: endpointOther}
	for _, e := range s.endpoints {
		if e.path == r.URL.Path {
			to = e
		}
	}
	s.refuse(w, r, to, earlyRefusal(status, message))
}

func (s *server) notFound(http.ResponseWriter, *http.Request) error {
	paths := make([]string, len(s.endpoints))
	for i, e := range s.endpoints {
		paths[i] = e.path
	}
	return &refusal{status: http.StatusNotFound, reason: reasonNotFound, message: "no such endpoint, want one of " + strings.Join(paths, ", ")}
}
