// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package gunzip decompresses gzip that is in memory as a whole, with any number of members and nothing
// after them. The caller bounds the output, and reserves memory before it is allocated.
package gunzip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// ErrLimit means that there are more decompressed bytes than the limit.
var ErrLimit = errors.New("gzip: more decompressed bytes than the limit")

const (
	// ReaderSize bounds the memory of Decompress in addition to its output, in bytes: a reader with its
	// window and tables.
	ReaderSize = 64 << 10

	// minOutput is the size of the smallest buffer, in bytes.
	minOutput = 4 << 10

	// maxRatio is the most bytes that one byte of gzip can become.
	maxRatio = 1032
)

// Is reports whether data begins as gzip.
func Is(data []byte) bool { return len(data) >= 2 && data[0] == 0x1f && data[1] == 0x8b }

// Estimate returns the length in the trailer of the last member, as far as so few bytes can become
// that many. If there is one member and it is not corrupt, that is the decompressed size.
func Estimate(data []byte) int {
	if len(data) < 4 {
		return 0
	}
	length := int64(binary.LittleEndian.Uint32(data[len(data)-4:]))
	return int(min(length, int64(len(data))*maxRatio))
}

// reader is a gzip reader that is used again.
type reader struct {
	from bytes.Reader
	gzip gzip.Reader
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// Decompress returns the content of all members of data, at most limit bytes. It calls reserve with the bytes
// that it is about to hold in total, before it allocates them.
func Decompress(data []byte, limit int, reserve func(bytes int64) error) ([]byte, error) {
	limit = min(limit, math.MaxInt-1)
	var out []byte
	grow := func(size int) error {
		size = min(size, limit) + 1 // one byte more, to see the end without growing
		if err := reserve(ReaderSize + int64(cap(out)+size)); err != nil {
			return err
		}
		out = append(make([]byte, 0, size), out...)
		return nil
	}
	if err := grow(max(Estimate(data), minOutput)); err != nil {
		return nil, err
	}
	r := readers.Get().(*reader)
	defer func() {
		r.from.Reset(nil)
		readers.Put(r)
	}()
	r.from.Reset(data)
	if err := r.gzip.Reset(&r.from); err != nil {
		return nil, errors.New("gzip: the header is malformed")
	}
	for {
		n, err := r.gzip.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case len(out) > limit:
			return nil, ErrLimit
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("gzip: after %d decompressed bytes: %s", len(out), strings.TrimPrefix(err.Error(), "gzip: "))
		case len(out) == cap(out):
			if err := grow(2 * cap(out)); err != nil {
				return nil, err
			}
		}
	}
}
