// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"strings"
)

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
	var place strings.Builder
	place.WriteString(e.File)
	if e.Record > 0 {
		fmt.Fprintf(&place, ": record %d", e.Record)
		if e.Offset >= 0 {
			fmt.Fprintf(&place, " at byte %d", e.Offset)
		}
	}
	return place.String() + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
