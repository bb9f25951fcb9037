// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package repeatlog

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// host notes the statuses that it is told.
type host struct{ told []componentstatus.Status }

func (*host) GetExtensions() map[component.ID]component.Component { return nil }
func (h *host) Report(event *componentstatus.Event)               { h.told = append(h.told, event.Status()) }

const full, away = "Disk is full", "Backend is away"

func TestTroubleIsLoggedOnceAMinute(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	now := time.Now()
	h, r := &host{}, New(zap.New(core))
	r.now = func() time.Time { return now }
	r.Start(h)
	r.Over(full, "Writing again") // there was none
	assert.Zero(t, logs.Len())
	for range 150 { // a failure a second
		r.Failed(full, errors.New("no space left"), zap.String("directory", "/data"))
		now = now.Add(time.Second)
	}
	var counts []any
	for _, entry := range logs.All() {
		assert.Equal(t, zapcore.WarnLevel, entry.Level)
		assert.Equal(t, full, entry.Message)
		assert.Equal(t, "/data", entry.ContextMap()["directory"])
		assert.Equal(t, "no space left", entry.ContextMap()["error"])
		counts = append(counts, entry.ContextMap()["count"])
	}
	assert.Equal(t, []any{int64(1), int64(60), int64(60)}, counts)

	r.Failed(away, errors.New("refused"))
	r.Over(full, "Writing again")
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusRecoverableError}, h.told)
	r.Over(away, "Sending again")
	r.Over(away, "Sending again")
	assert.Equal(t, componentstatus.StatusOK, h.told[len(h.told)-1])
	assert.Len(t, h.told, 3)
	assert.Equal(t, 1, logs.FilterMessage("Writing again").Len())
	assert.Equal(t, 1, logs.FilterMessage("Sending again").Len())

	now = now.Add(Interval)
	r.Failed(full, errors.New("again"))
	assert.Equal(t, full, logs.All()[logs.Len()-1].Message, "a new trouble is logged at once")
}

// TestTroubleThatComesAndGoesIsLoggedOnceAMinute, such as small records that fit and large ones that do not.
func TestTroubleThatComesAndGoesIsLoggedOnceAMinute(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	now := time.Now()
	h, r := &host{}, New(zap.New(core))
	r.now = func() time.Time { return now }
	r.Start(h)
	for range 120 {
		r.Failed(full, errors.New("no space left"))
		r.Over(full, "Writing again")
		r.Warn("File operation failed", errors.New("permission denied"))
		now = now.Add(time.Second)
	}
	assert.Equal(t, 2, logs.FilterMessage(full).Len())
	assert.Equal(t, 2, logs.FilterMessage("Writing again").Len())
	assert.Equal(t, 2, logs.FilterMessage("File operation failed").Len())
	assert.Equal(t, int64(60), logs.FilterMessage(full).All()[1].ContextMap()["count"])
	assert.Equal(t, componentstatus.StatusOK, h.told[len(h.told)-1], "a warning without an end is no status")
}

func TestTroubleBeforeStartIsLogged(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	r := New(zap.New(core, zap.AddCaller()))
	r.Failed(full, errors.New("x"))
	r.Over(full, "Writing again")
	require.Equal(t, 2, logs.Len())
	for _, entry := range logs.All() {
		assert.Contains(t, entry.Caller.File, "reporter_test.go", "the component, not this package")
	}
}

// TestQuiet: what a Reporter says in place of exporterhelper is left out, unless the level is debug; losses stay.
func TestQuiet(t *testing.T) {
	for level, want := range map[zapcore.Level]int{zapcore.InfoLevel: 2, zapcore.DebugLevel: 4} {
		core, logs := observer.New(level)
		logger := Quiet(zap.New(core)).With(zap.String("exporter", "x"))
		logger.Info("Exporting failed. Will retry the request after interval.")
		logger.Error("Exporting failed. Rejecting data.")
		logger.Error("Exporting failed. Dropping data.")
		logger.Info("Other")
		assert.Equal(t, want, logs.Len())
	}
}
