// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import "fmt"

// errorString is an error that can be a constant.
type errorString string

func (e errorString) Error() string { return string(e) }

const (
	// ErrClosed is returned by a Writer after Close.
	ErrClosed errorString = "segment: writer is closed"

	// ErrGone: the name no longer leads to the file that was opened under it.
	// Options.Trouble is told of it.
	ErrGone errorString = "removed, moved, cut or replaced by someone else"

	// ErrNotDirectory: what stands in the place of the directory of a group is none.
	// Trying again will not help, until someone takes it away.
	ErrNotDirectory errorString = "not a directory but something else"
)

// InvalidRecordError is returned by Append for a record that no file can hold.
// Trying again will not help.
type InvalidRecordError struct {
	Reason error
}

func (e *InvalidRecordError) Error() string { return "segment: " + e.Reason.Error() }

func (e *InvalidRecordError) Unwrap() error { return e.Reason }

// DamageError tells of a part of a file that holds no whole record.
type DamageError struct {
	// File is the name of the file, as far as the Reader knows it.
	File string
	// Offset is where the damaged part begins, in bytes from the file's begin.
	Offset int64
	// Length of the damaged part in bytes, up to the next whole record or the end.
	Length int64
	// Torn is set if the damaged part goes to the end of the file, as after a
	// crash or while the file is written.
	Torn bool
	// Reason says what was found at Offset.
	Reason error
}

func (e *DamageError) Error() string {
	what := "damaged"
	if e.Torn {
		what = "torn"
	}
	return fmt.Sprintf("segment: %s: %s: %d bytes at offset %d: %v", e.File, what, e.Length, e.Offset, e.Reason)
}

func (e *DamageError) Unwrap() error { return e.Reason }
