// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestDetailsAreLoggedAtDebugOnly(t *testing.T) {
	for level, want := range map[zapcore.Level]int{zapcore.InfoLevel: 2, zapcore.DebugLevel: 5} {
		core, logs := observer.New(level)
		logger := zap.New(core, zap.WrapCore(quiet)).With(zap.String("component", "x"))
		logger.Info("Extension is starting...")
		logger.Warn("zPages span processor registration is not available")
		logger.Info("Everything is ready. Begin running and processing data.")
		logger.Error("Failed to start extension")
		logger.Warn("[core] [Channel #1 SubChannel #2] grpc: addrConn.createTransport failed to connect to {Addr: \"127.0.0.1:1\"}")
		assert.Equal(t, want, logs.FilterField(zap.String("component", "x")).Len())
	}
}

// TestRejectionsOfATargetAreLoggedOnceAMinute for each exporter, without advice that shipped configurations rule out.
func TestRejectionsOfATargetAreLoggedOnceAMinute(t *testing.T) {
	const rejecting = "Exporting failed. Rejecting data. Try enabling retry_on_failure config option to retry on retryable errors. Try enabling sending_queue to survive temporary failures."
	core, logs := observer.New(zapcore.InfoLevel)
	clock := &clock{time.Now()}
	base := zap.New(core, zap.WrapCore(quiet), zap.WithClock(clock))
	for _, exporter := range []string{"a", "b"} {
		logger := base.With(zap.String("exporter", exporter))
		for range 90 {
			logger.Error(rejecting, zap.String("error", "connection refused"))
			clock.now = clock.now.Add(time.Second)
		}
		got := logs.FilterField(zap.String("exporter", exporter)).All()
		if assert.Len(t, got, 2) {
			assert.Equal(t, "Exporting failed; the sender of the profiles gets an error", got[1].Message)
			assert.Equal(t, map[string]any{"exporter": exporter, "error": "connection refused", "count": int64(60)}, got[1].ContextMap())
		}
	}
	logs.TakeAll()
	for range 2 {
		base.Error("Exporting failed. Dropping data. Try enabling retry_on_failure config option to retry on retryable errors.", zap.Int("dropped_items", 1))
	}
	assert.Equal(t, 2, logs.FilterMessage("Exporting failed. Dropping data.").Len(), "each loss is logged")
}

type clock struct{ now time.Time }

func (c *clock) Now() time.Time                       { return c.now }
func (*clock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }
