// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/gzip"
)

var gzipReaders sync.Pool

// Decompress returns buf itself if it does not begin as gzip, and otherwise what
// all its gzip members hold, in memory of its own. Past limit bytes it stops
// with a *LimitError.
func Decompress(buf []byte, limit int) ([]byte, error) {
	if len(buf) < 2 || buf[0] != 0x1f || buf[1] != 0x8b {
		if len(buf) > limit {
			return nil, &LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(buf))}
		}
		return buf, nil
	}
	limit = min(limit, math.MaxInt-bytes.MinRead-1)
	z, _ := gzipReaders.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	defer gzipReaders.Put(z)
	if err := z.Reset(bytes.NewReader(buf)); err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	// The last four bytes are the size of the last member: nearly always the whole,
	// never more than a hint. Deflate cannot expand more than 1032 times.
	hint := int64(binary.LittleEndian.Uint32(buf[max(0, len(buf)-4):]))
	hint = min(hint, int64(limit), 1032*int64(len(buf)))
	out := bytes.NewBuffer(make([]byte, 0, hint+1+bytes.MinRead))
	n, err := out.ReadFrom(io.LimitReader(z, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("gzip: after %d decompressed bytes: %w", n, err)
	}
	if n > int64(limit) {
		return nil, &LimitError{What: "decompressed size in bytes", Limit: int64(limit)}
	}
	return out.Bytes(), nil
}
