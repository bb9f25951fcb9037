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

// encodedRecord is a record as it is written to a file.
type encodedRecord struct {
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
func (e encodedRecord) size() int64 {
	return int64(len(e.chunks[0]) + len(e.chunks[1]) + len(e.chunks[2]))
}

// release returns the memory. The chunks must not be used afterwards.
func (e encodedRecord) release() {
	if cap(e.buffer.framed)+cap(e.buffer.compressed) <= maxPooled {
		buffers.Put(e.buffer)
	}
}

// encode frames and compresses a record. The result may refer to the record, and the caller releases it. The
// error is ErrInvalidRecord if no file can hold the record.
func encode(format Format, record []byte) (encodedRecord, error) {
	if err := format.Content.checkRecord(record); err != nil {
		return encodedRecord{}, fmt.Errorf("%w: %w", ErrInvalidRecord, err)
	}
	var prefix, suffix []byte
	if format.Content == OTLPJSON {
		suffix = []byte{lineFeed}
	} else {
		prefix = binary.BigEndian.AppendUint32(nil, uint32(len(record)))
	}
	b := buffers.Get().(*buffer)
	b.framed, b.compressed = b.framed[:0], b.compressed[:0]
	e := encodedRecord{chunks: [3][]byte{prefix, record, suffix}, buffer: b}
	if format.Compression == Gzip {
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(b)
		for _, chunk := range e.chunks {
			_, _ = w.Write(chunk) // never fails: the buffer takes everything
		}
		_ = w.Close()
		e.chunks = [3][]byte{b.compressed}
		return e, nil
	}
	if format.Compression == None && len(record) > maxCopied {
		return e, nil
	}
	b.framed = slices.Grow(b.framed, len(record)+prefixSize)
	b.framed = append(append(append(b.framed, prefix...), record...), suffix...)
	e.chunks = [3][]byte{b.framed}
	if format.Compression == Zstd {
		encoder, err := zstdEncoder()
		if err != nil {
			return encodedRecord{}, fmt.Errorf("compress record of %d bytes: %w", len(record), err)
		}
		b.compressed = encoder.EncodeAll(b.framed, b.compressed)
		e.chunks = [3][]byte{b.compressed}
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
