// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"cmp"
	"math"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Limits bound the content of one payload. A field that is 0 means its default.
type Limits struct {
	// DecompressedSize is the size of the pprof message, in bytes. Default 64 MiB,
	// at most 4 GiB.
	DecompressedSize int
	// Memory is how many bytes the result may take, except for values that are 0, unless the
	// caller of UnmarshalWithin decides. It stops small payloads made of tiny entries. Default 1 GiB.
	Memory int64
	// Factor multiplies the limits of single entries, which no honest profile meets. Default 1.
	Factor int
}

// The limits of single entries with the factor 1.
const (
	maxSamples      = 4 << 20  // of a profile
	maxStackDepth   = 64 << 10 // locations of a sample
	maxLabels       = 4 << 10  // of a sample
	maxStringLength = 1 << 20  // bytes
)

const (
	maxDecompressedSize = 1<<32 - 1
	maxFactor           = 1 << 20 // then no limit of single entries is below math.MaxInt32
)

func (l Limits) withDefaults() Limits {
	return Limits{
		DecompressedSize: min(cmp.Or(max(l.DecompressedSize, 0), 64<<20), maxDecompressedSize),
		Memory:           cmp.Or(max(l.Memory, 0), 1<<30),
		Factor:           min(cmp.Or(max(l.Factor, 0), 1), maxFactor),
	}
}

// scaled returns a limit of single entries, times the factor.
func (l Limits) scaled(limit int) int { return int(min(int64(limit)*int64(l.Factor), math.MaxInt32)) }

// LimitError says that a payload is over one of the Limits.
type LimitError = wire.LimitError
