// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package panics keeps a bug in one piece of work from ending the process: a goroutine that works in the background
// turns a panic into an error, and goes on with its next work.
package panics

import (
	"errors"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"
)

// Error says that a function panicked.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch sets *err to an *Error if the function that defers it panics. That function must defer the call itself.
func Catch(err *error) {
	if value := recover(); value != nil {
		*err = &Error{value, debug.Stack()}
	}
}

// Guarded returns a function that returns an *Error if f panics.
func Guarded(f func() error) func() error {
	return func() (err error) {
		defer Catch(&err)
		return f()
	}
}

// Log calls f, and logs if it panics: what the goroutine does next.
func Log(logger *zap.Logger, next string, f func()) {
	err := Guarded(func() error { f(); return nil })()
	if caught, ok := errors.AsType[*Error](err); ok {
		logger.Error("Panic in the background; "+next, zap.Any("panic", caught.Value), zap.ByteString("stack", caught.Stack))
	}
}

// Rethrow panics if an error is an *Error, with the stack of its goroutine: on the goroutine of a request, whose
// server recovers, the work of others ends with theirs.
func Rethrow(err error) {
	if caught, ok := errors.AsType[*Error](err); ok {
		panic(fmt.Sprintf("%v\n\n%s", caught.Value, caught.Stack))
	}
}
