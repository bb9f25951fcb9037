// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import "github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"

// Limits bound what one recording may hold. A field that is 0 means its default, which no
// honest recording meets.
type Limits struct {
	// ChunkSize is the size of a chunk, in bytes. Default 64 MiB, at most 2 GiB.
	ChunkSize int
	// StackDepth is the number of frames of a stack. Default 65,536.
	StackDepth int
	// StringLength is the length of a string, in bytes. Default 1 MiB.
	StringLength int
	// Expansion is how many times its own size, beyond a first MiB, a chunk may take in
	// memory as OTLP. It stops small chunks made of tiny events. Default 16.
	Expansion int
}

// LimitError says that a recording is over one of the Limits, or over a limit that is not
// configurable.
type LimitError = jfr.LimitError

const maxChunkSize = 1<<31 - 1

func (l Limits) withDefaults() Limits {
	for _, d := range []struct {
		field *int
		value int
	}{
		{&l.ChunkSize, 64 << 20},
		{&l.StackDepth, 64 << 10},
		{&l.StringLength, 1 << 20},
		{&l.Expansion, 16},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	l.ChunkSize = min(l.ChunkSize, maxChunkSize)
	return l
}
