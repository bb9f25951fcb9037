// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import "time"

// Rotation says when a file is closed. A limit of 0 is none.
type Rotation struct {
	// MaxSize is the size of a file on disk in bytes. Only a single record may exceed it.
	MaxSize int64
	// MaxAge is the time from a file's creation until it is closed.
	MaxAge time.Duration
	// MaxRecords is the number of records in a file.
	MaxRecords int
}

// anyRecord is the least size of a record on disk. With it, due tells if a file is full.
const anyRecord = 1

// due returns why a file must be closed before size more bytes are written to it, or "".
func (r Rotation) due(f *partialFile, size int64, now time.Time) Reason {
	switch {
	case f.Reason != "": // it could not be closed before
		return f.Reason
	case f.Records == 0:
		return ""
	case r.MaxSize > 0 && f.Size+size > r.MaxSize:
		return BySize
	case r.MaxRecords > 0 && f.Records >= r.MaxRecords:
		return ByRecords
	case r.MaxAge > 0 && now.Sub(f.created) >= r.MaxAge:
		return ByAge
	default:
		return ""
	}
}
