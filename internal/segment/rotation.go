// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import "time"

// Rotation says when a file is full. A limit of zero is none.
type Rotation struct {
	// MaxSize is the size of a file on the disk, in bytes. A file exceeds it only
	// if it holds one record that does so by itself.
	MaxSize int64
	// MaxAge is the time from a file's first record until it is finished.
	MaxAge time.Duration
	// MaxRecords is the number of records in a file.
	MaxRecords int
}

// Reason says why a file was finished.
type Reason string

const (
	BySize    Reason = "size"
	ByAge     Reason = "age"
	ByRecords Reason = "records"
	// ByFraming: the framing has one record a file.
	ByFraming Reason = "framing"
	// ByFault: the file system failed while the file was written.
	ByFault Reason = "fault"
	// ByOpenFiles: too many groups had a file open.
	ByOpenFiles Reason = "open_files"
	// ByClose: the Writer was closed.
	ByClose Reason = "shutdown"
)

// usage is what a Rotation decides by.
type usage struct {
	size    int64
	records int
	age     time.Duration
}

// before says whether a file must be finished before size more bytes go into it.
func (r Rotation) before(u usage, size int64) (Reason, bool) {
	if r.MaxSize > 0 && u.records > 0 && u.size+size > r.MaxSize {
		return BySize, true
	}
	return r.after(u)
}

// after says whether a file is to be finished as it is.
func (r Rotation) after(u usage) (Reason, bool) {
	switch {
	case u.records == 0:
		return "", false
	case r.MaxSize > 0 && u.size >= r.MaxSize:
		return BySize, true
	case r.MaxRecords > 0 && u.records >= r.MaxRecords:
		return ByRecords, true
	case r.MaxAge > 0 && u.age >= r.MaxAge:
		return ByAge, true
	default:
		return "", false
	}
}
