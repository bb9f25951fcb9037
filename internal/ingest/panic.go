// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"fmt"

	"go.uber.org/zap"
)

// PanicError means that a component panicked while it processed a payload.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Recover turns a panic into a *PanicError and logs its stack. The fields say what was
// processed. A function must defer the call itself.
func Recover(logger *zap.Logger, err *error, fields ...zap.Field) {
	if value := recover(); value != nil {
		*err = &PanicError{value}
		logger.Error("Panic while processing a profile", append(fields, zap.Any("panic", value), zap.Stack("stack"))...)
	}
}
