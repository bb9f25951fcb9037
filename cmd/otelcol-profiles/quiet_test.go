// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestDetailsAreLoggedAtDebug(t *testing.T) {
	for level, want := range map[zapcore.Level]int{zapcore.InfoLevel: 2, zapcore.DebugLevel: 4} {
		core, logs := observer.New(level)
		logger := zap.New(core, zap.WrapCore(quiet)).With(zap.String("component", "x"))
		logger.Info("Extension is starting...")
		logger.Warn("zPages span processor registration is not available")
		logger.Info("Everything is ready. Begin running and processing data.")
		logger.Error("Failed to start extension")
		require.Equal(t, want, logs.Len())
		for _, line := range logs.All() {
			assert.Equal(t, details[line.Message], line.Level == zapcore.DebugLevel, line.Message)
			assert.Equal(t, "x", line.ContextMap()["component"])
		}
	}
}

func TestExportInterruptedByStopIsNoError(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	logger := zap.New(core, zap.WrapCore(quiet), zap.AddStacktrace(zapcore.ErrorLevel))
	const message = "Exporting failed. Dropping data."
	logger.Error(message, zap.Error(errors.New("interrupted due to shutdown: no connection")), zap.Int("dropped_items", 3))
	logger.Error(message, zap.Error(errors.New("not retryable error: too large")))
	lines := logs.All()
	require.Len(t, lines, 2)
	assert.Equal(t, zapcore.WarnLevel, lines[0].Level)
	assert.Empty(t, lines[0].Stack)
	assert.EqualValues(t, 3, lines[0].ContextMap()["dropped_items"])
	assert.Equal(t, zapcore.ErrorLevel, lines[1].Level)
	assert.Equal(t, message, lines[1].Message)
}
