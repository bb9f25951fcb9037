// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	prefixSize = 4 // bytes of a length
	lineFeed   = '\n'
	// Up to this many bytes, copying a record next to its framing is cheaper than a
	// second write.
	maxCopied = 64 << 10
	// Larger buffers are not kept for the next record.
	maxPooled = 16 << 20
)

// encoder frames and compresses a record.
type encoder struct{ framed, compressed []byte }

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// Write appends to the compressed bytes.
func (e *encoder) Write(p []byte) (int, error) {
	e.compressed = append(e.compressed, p...)
	return len(p), nil
}

// release keeps the memory for the next record.
func (e *encoder) release() {
	if cap(e.framed)+cap(e.compressed) <= maxPooled {
		encoders.Put(e)
	}
}

// chunks are a record as it is written to a file: its framing and itself, or all in one.
type chunks [][]byte

func (c chunks) size() (n int64) {
	for _, chunk := range c {
		n += int64(len(chunk))
	}
	return n
}

// encode returns a record as it is written to a file, which is valid until release and may refer to the record. The
// error is ErrInvalidRecord if no file can hold the record.
func (e *encoder) encode(format Format, record []byte) (chunks, error) {
	if err := format.Content.checkRecord(record); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidRecord, err)
	}
	prefix, suffix := binary.BigEndian.AppendUint32(nil, uint32(len(record))), []byte(nil)
	if format.Content == OTLPJSON {
		prefix, suffix = nil, []byte{lineFeed}
	}
	if format.Compression == None && len(record) > maxCopied {
		return chunks{prefix, record, suffix}, nil
	}
	e.framed, e.compressed = slices.Grow(e.framed[:0], len(record)+prefixSize), e.compressed[:0]
	e.framed = append(append(append(e.framed, prefix...), record...), suffix...)
	switch format.Compression {
	case Gzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(e)
		_, _ = w.Write(e.framed) // never fails: the encoder takes everything
		_ = w.Close()
		return chunks{e.compressed}, nil
	case Zstd:
		w, err := zstdEncoder()
		if err != nil {
			return nil, fmt.Errorf("compress record of %d bytes: %w", len(record), err)
		}
		e.compressed = w.EncodeAll(e.framed, e.compressed)
		return chunks{e.compressed}, nil
	}
	return chunks{e.framed}, nil
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// zstdEncoder is shared by all Writers: EncodeAll may be called concurrently, and an
// encoder retains megabytes.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
		// With the default of 8 MiB, each of the concurrent encodings retains 16 MiB once it has
		// seen a large record. Profiles do not get smaller by it: the dictionary leaves no
		// repetitions that far apart.
		zstd.WithWindowSize(1<<20))
})
