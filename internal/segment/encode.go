// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
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

// encoded is a record as it is written to a file.
type encoded struct {
	chunks [3][]byte // prefix, record and suffix, or all of them in the first
	buffer *buffer   // the memory of the chunks, unless that is the record's
}

// buffer is memory for encoding one record.
type buffer struct {
	framed, compressed []byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// Write appends to the compressed bytes.
func (b *buffer) Write(p []byte) (int, error) {
	b.compressed = append(b.compressed, p...)
	return len(p), nil
}

// size is the number of bytes on disk.
func (e encoded) size() int64 {
	return int64(len(e.chunks[0]) + len(e.chunks[1]) + len(e.chunks[2]))
}

// release returns the memory. The chunks must not be used afterwards.
func (e encoded) release() {
	if cap(e.buffer.framed)+cap(e.buffer.compressed) <= maxPooled {
		buffers.Put(e.buffer)
	}
}

// encode frames and compresses a record. The result may refer to the record.
func encode(format Format, record []byte) (encoded, error) {
	b := buffers.Get().(*buffer)
	b.framed, b.compressed = b.framed[:0], b.compressed[:0]
	e := encoded{buffer: b}

	var prefix, suffix []byte
	switch {
	case format.bare():
	case format.Content == OTLPJSON:
		suffix = []byte{lineFeed}
	default:
		prefix = binary.BigEndian.AppendUint32(nil, uint32(len(record)))
	}
	framed := func() []byte {
		b.framed = slices.Grow(b.framed, len(record)+prefixSize)
		b.framed = append(append(append(b.framed, prefix...), record...), suffix...)
		return b.framed
	}

	switch {
	case format.Compression == Gzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(b)
		for _, chunk := range [][]byte{prefix, record, suffix} {
			if _, err := w.Write(chunk); err != nil {
				return e, err
			}
		}
		if err := w.Close(); err != nil {
			return e, err
		}
		e.chunks[0] = b.compressed
	case format.Compression == Zstd:
		encoder, err := zstdEncoder()
		if err != nil {
			return e, err
		}
		b.compressed = encoder.EncodeAll(framed(), b.compressed)
		e.chunks[0] = b.compressed
	case len(record) <= maxCopied:
		e.chunks[0] = framed()
	default:
		e.chunks = [3][]byte{prefix, record, suffix}
	}
	return e, nil
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
