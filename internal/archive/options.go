// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// Options say how to read files.
type Options struct {
	// MaxMemory bounds the memory in bytes that reading takes: a record may have an eighth of it
	// and take a quarter when it is decoded.
	MaxMemory int64
	// MaxRecord is the size in bytes that a record may have, if that is not an eighth of MaxMemory.
	MaxRecord int64
	// Setting is the name of the setting that limits the memory, for errors.
	Setting string
	// Progress is called with the number of bytes of files that were read; nil is none.
	Progress func(n int)
}

func (o *Options) maxRecord() int64 {
	return min(cmp.Or(o.MaxRecord, o.MaxMemory/8), recordfile.MaxRecordSize)
}

// raise is the advice for a record that is too large.
func (o *Options) raise() string { return "raise " + cmp.Or(o.Setting, "the memory limit") }

// tooLarge is the error of a record of more than maxRecord bytes; size is 0 if it is not known.
func (o *Options) tooLarge(what string, size int64) error {
	limit := mebibytes(o.maxRecord())
	if size == 0 {
		return fmt.Errorf("%s has more than %s: %s", what, limit, o.raise())
	}
	return fmt.Errorf("%s has %s, more than %s: %s", what, mebibytes(size), limit, o.raise())
}

func (o *Options) maxDecoded() int64 { return o.MaxMemory / 4 }
