// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
	"runtime"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	prefixSize = 4 // bytes of a length
	lineFeed   = '\n'

	// Up to this many bytes, copying a record next to its framing is cheaper than
	// a second write.
	copyUpTo = 64 << 10
	// Larger buffers are not kept for the next record.
	keepUpTo = 16 << 20
)

// encoded is a record as it goes into a file.
type encoded struct {
	chunks [2][]byte // to be written one behind the other
	buffer *buffer   // what the chunks lie in, unless that is the record
}

// buffer is memory for encoding one record.
type buffer struct {
	framed []byte
	packed []byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// Write appends to the packed bytes, for compressors that stream.
func (b *buffer) Write(p []byte) (int, error) {
	b.packed = append(b.packed, p...)
	return len(p), nil
}

// size is the number of bytes on the disk.
func (e encoded) size() int64 { return int64(len(e.chunks[0]) + len(e.chunks[1])) }

// release gives the memory back; the chunks must not be used any more.
func (e encoded) release() {
	if e.buffer != nil && cap(e.buffer.framed)+cap(e.buffer.packed) <= keepUpTo {
		buffers.Put(e.buffer)
	}
}

// encode frames and compresses a record. The result may refer to the record.
func encode(format Format, record []byte) (encoded, error) {
	framing := framingBytes(format.framing(), record)
	b := buffers.Get().(*buffer)
	b.framed, b.packed = b.framed[:0], b.packed[:0]
	e := encoded{buffer: b}
	switch format.Compression {
	case Gzip:
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(b)
		for _, chunk := range framing.around(record) {
			if _, err := w.Write(chunk); err != nil {
				return e, err
			}
		}
		if err := w.Close(); err != nil {
			return e, err
		}
		e.chunks[0] = b.packed
	case Zstd:
		encoder, err := zstdEncoder()
		if err != nil {
			return e, err
		}
		b.packed = encoder.EncodeAll(framing.join(b, record), b.packed)
		e.chunks[0] = b.packed
	default:
		if len(record) <= copyUpTo {
			e.chunks[0] = framing.join(b, record)
		} else {
			e.chunks = framing.around(record)
		}
	}
	return e, nil
}

// framed are the bytes before and behind a record; one of them is empty.
type framed struct{ before, behind []byte }

func framingBytes(framing Framing, record []byte) framed {
	switch framing {
	case LengthPrefixed:
		return framed{before: binary.BigEndian.AppendUint32(nil, uint32(len(record)))}
	case Lines:
		return framed{behind: []byte{lineFeed}}
	default:
		return framed{}
	}
}

// around gives the record and its framing in their order.
func (f framed) around(record []byte) [2][]byte {
	if len(f.before) > 0 {
		return [2][]byte{f.before, record}
	}
	return [2][]byte{record, f.behind}
}

// join copies the record and its framing together.
func (f framed) join(b *buffer, record []byte) []byte {
	b.framed = append(append(append(b.framed, f.before...), record...), f.behind...)
	return b.framed
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// zstdEncoder is shared by all Writers: EncodeAll may be called concurrently, and
// what an encoder retains is megabytes.
var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)))
})
