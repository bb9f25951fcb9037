// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import "fmt"

// Error says what is wrong with a file or with a record of it.
type Error struct {
	File string
	// Record is the number of the record, from 1, or 0 if the error concerns the file.
	Record int
	// Offset is where the record starts in the file, -1 if that is not known, as in a file that is
	// compressed as a whole.
	Offset int64
	Err    error
}

func (e *Error) Error() string {
	return e.File + ": " + e.InFile()
}

// InFile is the text of Error without the file.
func (e *Error) InFile() string {
	switch {
	case e.Record == 0:
		return e.Err.Error()
	case e.Offset < 0:
		return fmt.Sprintf("record %d: %v", e.Record, e.Err)
	}
	return fmt.Sprintf("record %d at byte %d: %v", e.Record, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }
