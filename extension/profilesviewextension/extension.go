// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesviewextension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/webui"
	"github.com/otelcol-profiles/otelcol-profiles/internal/webui/page"
)

const (
	// drainTimeout is how long requests may take to finish at shutdown.
	drainTimeout = 2 * time.Second
	// cancelTimeout is how long they may take after they were cancelled: a read of a file does not notice it.
	cancelTimeout = 4 * time.Second
)

// view serves the page from Start to Shutdown.
type view struct {
	config   *Config
	settings extension.Settings

	page      *page.Page
	telemetry *telemetry
	listener  net.Listener
	server    *http.Server
	cancel    context.CancelFunc // of all requests
	serving   sync.WaitGroup
}

func (v *view) Start(ctx context.Context, host component.Host) error {
	var err error
	settings := page.Settings{
		Directory: v.config.Directory,
		MaxMemory: int64(v.config.MaxMemory),
		Timeout:   v.config.HTTP.WriteTimeout * 9 / 10,
		TraceURL:  v.config.TraceURL,
	}
	if v.config.MCP.HasValue() {
		settings.MCP = cmp.Or(v.settings.BuildInfo.Version, "unknown")
	}
	if v.page, err = page.New(settings); err != nil {
		return err
	}
	if v.telemetry, err = newTelemetry(&v.settings, v.page); err != nil {
		return err
	}
	hosts := append(slices.Clone(v.config.AllowedHosts), v.config.host())
	handler := v.telemetry.measure(webui.Protect(v.page, page.IsRPC, hosts...))
	config := v.config.HTTP
	config.CompressionAlgorithms = []string{"", "gzip"}
	if v.server, err = config.ToServer(ctx, host.GetExtensions(), v.settings.TelemetrySettings, handler); err != nil {
		return err
	}
	if config.Auth.HasValue() {
		v.server.Handler = page.SignIn(v.server.Handler, hosts...)
	}
	if v.listener, err = config.ToListener(ctx); err != nil {
		return fmt.Errorf("listening on endpoint %q: %w", config.NetAddr.Endpoint, err)
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	v.cancel = cancel
	v.server.BaseContext = func(net.Listener) context.Context { return base }
	v.settings.Logger.Info("Started profiles page", zap.String("url", v.url()), zap.String("directory", v.config.Directory))
	v.serving.Go(func() {
		if err := v.server.Serve(v.listener); !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(host, componentstatus.NewFatalErrorEvent(fmt.Errorf("serving endpoint %q: %w", config.NetAddr.Endpoint, err)))
		}
	})
	return nil
}

// url is the address of the page, for people.
func (v *view) url() string {
	scheme, address := "http", v.listener.Addr().String()
	if v.config.HTTP.TLS.HasValue() {
		scheme = "https"
	}
	if tcp, ok := v.listener.Addr().(*net.TCPAddr); ok && (v.config.host() == "localhost" || tcp.IP.IsUnspecified()) {
		address = net.JoinHostPort("localhost", strconv.Itoa(tcp.Port))
	}
	return scheme + "://" + address
}

// Shutdown lets running requests finish, and cancels those that take longer. What runs on after a
// few seconds only reads.
func (v *view) Shutdown(ctx context.Context) error {
	if v.telemetry != nil {
		v.telemetry.builder.Shutdown()
	}
	if v.cancel == nil { // not started, or shut down
		return nil
	}
	draining, stopDraining := context.WithTimeout(ctx, drainTimeout)
	defer stopDraining()
	err := v.server.Shutdown(draining)
	v.cancel()
	if err != nil {
		err = v.server.Close()
	}
	v.serving.Wait()
	cancelled, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	if v.page.Wait(cancelled) != nil {
		v.settings.Logger.Warn("Requests still run at shutdown", zap.Duration("cancelled_for", cancelTimeout))
	}
	v.page.Close()
	v.cancel = nil
	return err
}
