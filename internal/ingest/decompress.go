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

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	// maxLayers is how often a payload may be compressed: by the profiler, by the HTTP
	// library and by a proxy.
	maxLayers = 3

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

// ReadAll reads body to its end, within bytes that it takes before. expected is its length in bytes, negative if
// unknown: then a body that is not small takes as many as a body may have.
func ReadAll(ctx context.Context, from io.Reader, expected int64, r *Reservation) ([]byte, error) {
	most, small := r.limit.most[body].bytes, r.limit.most[smallBody].bytes
	size := expected
	if expected < 0 {
		size = small
	}
	if err := r.TakeBody(ctx, size); err != nil {
		return nil, err
	}
	buf, err := readUpTo(from, make([]byte, 0, size+1))
	if err == nil && expected < 0 && int64(len(buf)) > small {
		r.Shrink(smallBody, 0)
		if err := r.Take(ctx, body, most); err != nil {
			return nil, err
		}
		// A growing buffer has a copy of at most half of its size beside it.
		size = most / 3 * 2
		for n := 2 * small; err == nil && len(buf) == cap(buf) && int64(len(buf)) <= size; n *= 2 {
			buf, err = readUpTo(from, append(make([]byte, 0, min(n, size)+1), buf...))
		}
		r.Shrink(body, int64(cap(buf)))
	}
	if err == nil && expected < 0 {
		err = (&limit{size, "size of a body of unknown length in bytes", "a twenty-fourth"}).check(int64(len(buf)))
	}
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

// expansion is how many bytes it takes to remove the outer layer of compression: as many as the payload states, or as can
// be expected. It is 0 without compression. A payload that states more than the limit is rejected.
func expansion(buf []byte, limit int) (int64, error) {
	stated, size, extra := int64(0), int64(0), int64(1) // one byte more, to see the end without growing
	switch Compression(buf) {
	case "":
		return 0, nil
	case "gzip":
		stated = int64(pproftranslator.GzipSize(buf))
		size, extra = max(stated, minBuffer), 1+gzipMemory
	case "zstd":
		var err error
		if stated, size, err = zstdSize(buf); err != nil {
			return 0, err
		}
		// The decoder has no error of its own for output that does not fit. With room for
		// one block more than limit, it has exceeded limit by then.
		extra = maxZstdBlock
	case "lz4":
		size = max(4*int64(len(buf)), minBuffer)
	}
	if stated > int64(limit) {
		return 0, &pproftranslator.LimitError{What: DecompressedSize, Limit: int64(limit)}
	}
	return min(size, int64(limit)) + extra, nil
}

// Decompress removes all layers of compression. The result has at most limit bytes; otherwise the error is a
// *pproftranslator.LimitError. r holds it, unless it is buf itself, as if that is not compressed.
func (r *Reservation) Decompress(ctx context.Context, buf []byte, limit int) ([]byte, error) {
	size, err := expansion(buf, limit)
	if err == nil {
		err = r.Take(ctx, Decompressed, size)
	}
	if err != nil {
		return nil, err
	}
	return r.decompressWithin(ctx, buf, limit, size)
}

// decompressWithin is Decompress with so many bytes that r has taken for it. It takes what more it needs if that is free.
// With an error, the result is what was decompressed before it, which r does not hold.
func (r *Reservation) decompressWithin(ctx context.Context, buf []byte, limit int, taken int64) (_ []byte, err error) {
	others := r.held[Decompressed] - taken
	defer func() {
		if err != nil {
			r.Shrink(Decompressed, others)
		}
	}()
	outer := int64(0) // bytes of buf, once it is the content of a layer
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
			err = r.resize(Decompressed, others+outer+size)
		}
		if err != nil {
			return nil, err
		}
		switch compression {
		case "gzip":
			buf, err = r.gunzip(buf, limit, size)
		case "zstd":
			buf, err = unzstd(buf, limit, size)
		case "lz4":
			buf, err = r.unlz4(ctx, buf, limit, size)
		}
		if err != nil {
			return buf, err
		}
		outer = int64(cap(buf))
		r.Shrink(Decompressed, others+outer)
	}
}

// gunzip decompresses all members within size bytes that r holds.
func (r *Reservation) gunzip(buf []byte, limit int, size int64) ([]byte, error) {
	reader := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(reader)
	if err := reader.Reset(bytes.NewReader(buf)); err != nil {
		return nil, errors.New("gzip: the header is malformed")
	}
	return r.readGrowing("gzip", reader, limit, size-gzipMemory)
}

// unlz4 decompresses all frames. The blocks of the decoder count as work.
func (r *Reservation) unlz4(ctx context.Context, buf []byte, limit int, size int64) ([]byte, error) {
	blocks := int64(2) << 22 // a compressed and a plain one, of the largest size
	if len(buf) > 5 {
		blocks = 2 << (8 + 2*min(buf[5]>>4&7, 7)) // as the header states it
	}
	free, err := r.TakeWork(ctx, blocks)
	if err != nil {
		return nil, err
	}
	defer free()
	return r.readGrowing("lz4", lz4.NewReader(bytes.NewReader(buf)), limit, size)
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

// readGrowing reads a stream to its end, first into size bytes that r holds. A stream that is longer than it states takes
// more if that is free.
func (r *Reservation) readGrowing(name string, from io.Reader, limit int, size int64) ([]byte, error) {
	out, err := readUpTo(from, make([]byte, 0, size))
	for err == nil && len(out) == cap(out) && len(out) <= limit {
		larger := min(2*cap(out), limit+1)
		old := int64(cap(out))
		tooMuch := r.TryTake(Work, old) // until it is copied
		if tooMuch != nil {
			return out, tooMuch
		}
		if tooMuch = r.TryTake(Decompressed, int64(larger)-old); tooMuch == nil {
			out, err = readUpTo(from, append(make([]byte, 0, larger), out...))
		}
		r.Shrink(Work, r.held[Work]-old)
		if tooMuch != nil {
			return out, tooMuch
		}
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
