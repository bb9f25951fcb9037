// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// Observe returns settings of a component, whose metrics and logs a test reads.
func Observe(tb testing.TB) (component.TelemetrySettings, *componenttest.Telemetry, *observer.ObservedLogs) {
	tb.Helper()
	telemetry := componenttest.NewTelemetry()
	tb.Cleanup(func() { assert.NoError(tb, telemetry.Shutdown(context.Background())) })
	core, logs := observer.New(zapcore.DebugLevel)
	settings := telemetry.NewTelemetrySettings()
	settings.Logger = zap.New(core)
	return settings, telemetry, logs
}

// StatusHost is a host that notes the statuses that a component reports.
type StatusHost struct {
	component.Host

	mu       sync.Mutex
	statuses []componentstatus.Status
}

// NewStatusHost returns a host without extensions.
func NewStatusHost() *StatusHost { return &StatusHost{Host: componenttest.NewNopHost()} }

// Report notes a status.
func (h *StatusHost) Report(event *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.statuses = append(h.statuses, event.Status())
}

// Statuses returns all statuses.
func (h *StatusHost) Statuses() []componentstatus.Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.statuses)
}

// LogFromInfo makes components log as they do by default, without messages at level debug.
func LogFromInfo(settings *component.TelemetrySettings) *observer.ObservedLogs {
	core, logs := observer.New(zapcore.InfoLevel)
	settings.Logger = zap.New(core)
	return logs
}
