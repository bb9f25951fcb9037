// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
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

// release keeps the memory for the next record.
func (e *encoder) release() {
	if cap(e.framed)+cap(e.compressed) <= maxPooled {
		encoders.Put(e)
	}
}

// encode returns a record as it is written to a file: its framing and itself, or all in one. The chunks are valid until
// release, and may refer to the record. The error is ErrInvalidRecord if no file can hold the record.
func (e *encoder) encode(format Format, record []byte) (chunks [][]byte, err error) {
	if err := format.Content.checkRecord(record); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidRecord, err)
	}
	prefix, suffix := binary.BigEndian.AppendUint32(nil, uint32(len(record))), []byte(nil)
	if format.Content == OTLPJSON {
		prefix, suffix = nil, []byte{lineFeed}
	}
	if format.Compression == None && len(record) > maxCopied {
		return [][]byte{prefix, record, suffix}, nil
	}
	e.framed = slices.Grow(e.framed[:0], len(record)+prefixSize)
	e.framed = append(append(append(e.framed, prefix...), record...), suffix...)
	switch format.Compression {
	case Gzip:
		compressed := bytes.NewBuffer(e.compressed[:0])
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(compressed)
		_, _ = w.Write(e.framed) // never fails: the buffer takes everything
		_ = w.Close()
		e.compressed = compressed.Bytes()
	case Zstd:
		e.compressed = zstdEncoder().EncodeAll(e.framed, e.compressed[:0])
	default:
		return [][]byte{e.framed}, nil
	}
	return [][]byte{e.compressed}, nil
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// zstdEncoder is shared by all Writers: EncodeAll may be called concurrently, and an
// encoder retains megabytes.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
		// With the default of 8 MiB, each of the concurrent encodings retains 16 MiB once it has
		// seen a large record. Profiles do not get smaller by it: the dictionary leaves no
		// repetitions that far apart.
		zstd.WithWindowSize(1<<20))
	return w // an error would be of the options
})
