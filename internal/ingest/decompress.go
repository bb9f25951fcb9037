// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	// maxLayers is how often a payload may be compressed: by the profiler, by the HTTP
	// library and by a proxy.
	maxLayers = 3

	// firstBuffer is the size of the first buffer for a body of unknown length, in bytes.
	firstBuffer = 64 << 10

	// minBuffer is the size of the smallest buffer, in bytes.
	minBuffer = 4 << 10

	// gzipMemory is the memory of gzip in addition to its output, in bytes: a window and tables.
	gzipMemory = 64 << 10

	// maxZstdWindow is the largest window of a zstd frame that is decoded, in bytes:
	// that of zstd --ultra -22.
	maxZstdWindow = 128 << 20

	// maxZstdBlock is the largest content of a block of zstd, in bytes.
	maxZstdBlock = 128 << 10
)

// ReadAll reads body to its end, within bytes of the lease that it takes before. expected is its length in bytes, negative if
// unknown: then the lease takes more on the way.
func ReadAll(ctx context.Context, from io.Reader, expected int64, lease *budget.Lease) ([]byte, error) {
	taken, size := expected, expected+1
	if expected < 0 {
		taken = lease.FirstBody()
		size = min(taken, firstBuffer)
	}
	if err := lease.TakeBody(ctx, taken); err != nil {
		return nil, err
	}
	buf, err := readUpTo(from, make([]byte, 0, size))
	for expected < 0 && err == nil && len(buf) == cap(buf) {
		// A growing buffer has a copy of half of its size beside it.
		larger := 2 * int64(cap(buf))
		if needed := larger + int64(cap(buf)); needed > taken {
			if err := lease.TakeBody(ctx, needed-taken); err != nil {
				return nil, err
			}
			taken = needed
		}
		buf, err = readUpTo(from, append(make([]byte, 0, larger), buf...))
	}
	lease.ShrinkBody(max(expected, int64(cap(buf))))
	return buf, err
}

// readUpTo reads until the end, which is no error, or until buf is full.
func readUpTo(from io.Reader, buf []byte) ([]byte, error) {
	for len(buf) < cap(buf) {
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// DecompressedSize starts what a *pproftranslator.LimitError says was counted, if that was the size after decompression.
const DecompressedSize = "decompressed size in bytes"

// compressions are the formats that a payload may have, by their first bytes. No pprof message starts with them.
var compressions = []struct{ name, magic string }{
	{"gzip", "\x1f\x8b"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"lz4", "\x04\x22\x4d\x18"},
}

// Compression returns the name of buf's compression, gzip, zstd or lz4, or "".
func Compression(buf []byte) string {
	for _, c := range compressions {
		if bytes.HasPrefix(buf, []byte(c.magic)) {
			return c.name
		}
	}
	return ""
}

// layerSize is what it takes to remove a layer of compression, in bytes.
type layerSize struct{ buffer, decoder int64 }

func (s layerSize) total() int64 { return s.buffer + s.decoder }

// expansion is what it takes to remove the outer layer of compression: a buffer for as many bytes as the payload states, or as
// can be expected. Without compression it is 0. A payload that states more than the limit is rejected.
func expansion(buf []byte, limit int) (layerSize, error) {
	stated, size, extra := int64(0), int64(0), int64(1) // one byte more, to see the end without growing
	decoder := int64(0)
	switch Compression(buf) {
	case "":
		return layerSize{}, nil
	case "gzip":
		stated = int64(pproftranslator.GzipSize(buf))
		size, decoder = max(stated, minBuffer), gzipMemory
	case "zstd":
		var err error
		if stated, size, err = zstdSize(buf); err != nil {
			return layerSize{}, err
		}
		// The decoder has no error of its own for output that does not fit. With room for
		// one block more than limit, it has exceeded limit by then.
		extra = maxZstdBlock
	case "lz4":
		size, decoder = max(4*int64(len(buf)), minBuffer), 2<<22 // a compressed and a plain block, of the largest size
		if len(buf) > 5 {
			decoder = 2 << (8 + 2*min(buf[5]>>4&7, 7)) // as the header states it
		}
	}
	if stated > int64(limit) {
		return layerSize{}, &pproftranslator.LimitError{What: DecompressedSize, Limit: int64(limit)}
	}
	return layerSize{min(size, int64(limit)) + extra, decoder}, nil
}

// Decompress removes all layers of compression. The result has at most limit bytes; otherwise the error is a
// *pproftranslator.LimitError. The lease holds it, unless it is buf itself, as if that is not compressed. With an error, the result
// is what was decompressed before it, which the lease does not hold.
func Decompress(lease *budget.Lease, buf []byte, limit int) (_ []byte, err error) {
	before := lease.Used()
	defer func() {
		if err != nil {
			lease.Free(lease.Used() - before)
		}
	}()
	for layer := 1; ; layer++ {
		compression := Compression(buf)
		if compression == "" {
			if len(buf) > limit {
				return nil, &pproftranslator.LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(buf))}
			}
			return buf, nil
		}
		if layer > maxLayers {
			return nil, fmt.Errorf("more than %d layers of compression", maxLayers)
		}
		size, err := expansion(buf, limit)
		if err == nil {
			err = lease.Take(size.total())
		}
		if err != nil {
			return nil, err
		}
		switch compression {
		case "gzip":
			buf, err = gunzip(lease, buf, limit, size.buffer)
		case "zstd":
			buf, err = unzstd(buf, limit, size.buffer)
		case "lz4":
			buf, err = readGrowing(lease, "lz4", lz4.NewReader(bytes.NewReader(buf)), limit, size.buffer)
		}
		if err != nil {
			return buf, err
		}
		lease.Free(lease.Used() - before - int64(cap(buf)))
	}
}

// gunzip decompresses all members within size bytes, or more.
func gunzip(lease *budget.Lease, buf []byte, limit int, size int64) ([]byte, error) {
	reader := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(reader)
	if err := reader.Reset(bytes.NewReader(buf)); err != nil {
		return nil, errors.New("gzip: the header is malformed")
	}
	return readGrowing(lease, "gzip", reader, limit, size)
}

// unzstd decompresses all frames within size bytes.
func unzstd(buf []byte, limit int, size int64) ([]byte, error) {
	decoder := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(decoder)
	all := make([]byte, size)
	plain, err := decoder.DecodeAll(buf, all[:0])
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(plain) > limit:
		return all, &pproftranslator.LimitError{What: DecompressedSize, Limit: int64(limit)}
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, &pproftranslator.LimitError{What: "zstd window in bytes", Limit: maxZstdWindow}
	case err != nil:
		return all, fmt.Errorf("zstd: %w", err)
	}
	return plain, nil
}

// readGrowing reads a stream to its end, first into size bytes that the lease holds. A stream that is longer than it states takes
// more, besides what it has until that is copied.
func readGrowing(lease *budget.Lease, name string, from io.Reader, limit int, size int64) ([]byte, error) {
	out, err := readUpTo(from, make([]byte, 0, size))
	for err == nil && len(out) == cap(out) && len(out) <= limit {
		larger, copied := min(2*cap(out), limit+1), int64(cap(out))
		if err := lease.Take(int64(larger)); err != nil {
			return out, err
		}
		out, err = readUpTo(from, append(make([]byte, 0, larger), out...))
		lease.Free(copied)
	}
	switch {
	case err != nil:
		return out, fmt.Errorf("%s: after %d decompressed bytes: %s", name, len(out), strings.TrimPrefix(err.Error(), name+": "))
	case len(out) > limit:
		return out, &pproftranslator.LimitError{What: DecompressedSize, Limit: int64(limit)}
	}
	return out, nil
}

var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// zstdDecoders holds decoders that write to their output directly and keep no window.
var zstdDecoders = sync.Pool{New: func() any {
	decoder, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxZstdWindow),
		zstd.WithDecodeAllCapLimit(true),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return decoder
}}

// zstdSize is how many bytes the frames of buf state that they have, and how many all have at most: those that state none
// by the number of their blocks.
func zstdSize(buf []byte) (stated, most int64, err error) {
	for len(buf) > 0 {
		var frame zstd.Header
		if buf, err = frame.DecodeAndStrip(buf); err != nil {
			return 0, 0, fmt.Errorf("zstd: %w", err)
		}
		blocks := int64(0)
		skip := int64(frame.SkippableSize)
		for last := frame.Skippable; !last && int64(len(buf)) >= skip+3; blocks++ {
			buf = buf[skip:]
			head := int64(buf[0]) | int64(buf[1])<<8 | int64(buf[2])<<16 // whether it is the last, type, size
			skip = head >> 3
			if head>>1&3 == 1 { // one byte, repeated
				skip = 1
			}
			last, buf = head&1 != 0, buf[3:]
		}
		if frame.HasCheckSum {
			skip += 4
		}
		if skip > int64(len(buf)) {
			return 0, 0, fmt.Errorf("zstd: %w", io.ErrUnexpectedEOF)
		}
		buf = buf[skip:]
		if frame.HasFCS {
			stated += int64(min(frame.FrameContentSize, 1<<40))
		} else {
			most += blocks * maxZstdBlock
		}
	}
	return stated, stated + most, nil
}
