// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestDetailsAreLoggedAtDebugOnly(t *testing.T) {
	for level, want := range map[zapcore.Level]int{zapcore.InfoLevel: 2, zapcore.DebugLevel: 4} {
		core, logs := observer.New(level)
		logger := zap.New(core, zap.WrapCore(quiet)).With(zap.String("component", "x"))
		logger.Info("Extension is starting...")
		logger.Warn("zPages span processor registration is not available")
		logger.Info("Everything is ready. Begin running and processing data.")
		logger.Error("Failed to start extension")
		assert.Equal(t, want, logs.FilterField(zap.String("component", "x")).Len())
	}
}
