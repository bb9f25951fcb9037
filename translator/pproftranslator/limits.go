// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"cmp"
	"fmt"
)

// Limits bound the content of one payload. A field that is 0 means its default,
// which no honest profile meets.
type Limits struct {
	// DecompressedSize is the size of the pprof message, in bytes. Default 64 MiB,
	// at most 4 GiB.
	DecompressedSize int
	// Samples is the number of samples of a profile. Default 4,194,304.
	Samples int
	// StackDepth is the number of locations of a sample. Default 65,536.
	StackDepth int
	// Labels is the number of labels of a sample. Default 4,096.
	Labels int
	// StringLength is the length of a string, in bytes. Default 1 MiB.
	StringLength int
	// Memory is how many bytes the result may take, except for values that are 0, unless the
	// caller of UnmarshalWithin decides. It stops small payloads made of tiny entries. Default 1 GiB.
	Memory int64
}

const maxDecompressedSize = 1<<32 - 1

func (l Limits) withDefaults() Limits {
	return Limits{
		DecompressedSize: min(cmp.Or(max(l.DecompressedSize, 0), 64<<20), maxDecompressedSize),
		Samples:          cmp.Or(max(l.Samples, 0), 4<<20),
		StackDepth:       cmp.Or(max(l.StackDepth, 0), 64<<10),
		Labels:           cmp.Or(max(l.Labels, 0), 4<<10),
		StringLength:     cmp.Or(max(l.StringLength, 0), 1<<20),
		Memory:           cmp.Or(max(l.Memory, 0), 1<<30),
	}
}

// LimitError says that a payload is over one of the Limits.
type LimitError struct {
	What  string // what was counted, and where
	Limit int64
	Got   int64 // 0 where counting stopped at the limit
}

func (e *LimitError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("%s: more than the limit of %d", e.What, e.Limit)
	}
	return fmt.Sprintf("%s: %d, more than the limit of %d", e.What, e.Got, e.Limit)
}
