// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
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
