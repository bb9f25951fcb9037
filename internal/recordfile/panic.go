// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"runtime/debug"
)

// PanicError is a panic as an error.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// NoPanic calls do, and returns a panic of it as a *PanicError. Work in the background, and work on caches after a record is safe,
// must not end the process.
func NoPanic(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return do()
}
