// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package panics

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func explode() { panic("out of the blue") }

func TestAPanicBecomesAnError_A11(t *testing.T) {
	err := Guarded(func() error { explode(); return nil })()
	var caught *Error
	require.ErrorAs(t, err, &caught)
	assert.Equal(t, "panic: out of the blue", caught.Error())
	assert.Contains(t, string(caught.Stack), "panics.explode")
	require.PanicsWithValue(t, "out of the blue\n\n"+string(caught.Stack), func() { Rethrow(err) })

	other := errors.New("x")
	require.Equal(t, other, Guarded(func() error { return other })())
	require.NoError(t, Guarded(func() error { return nil })())
	require.NotPanics(t, func() { Rethrow(other); Rethrow(nil) })
}

func TestAPanicIsLogged_A11(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	Log(zap.New(core), "polling again later", func() {})
	assert.Zero(t, logs.Len())
	Log(zap.New(core), "polling again later", explode)
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, "Panic in the background; polling again later", logs.All()[0].Message)
	assert.Contains(t, logs.All()[0].ContextMap()["stack"], "panics.explode")
}
