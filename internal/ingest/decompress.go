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

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/otelcol-profiles/otelcol-profiles/internal/gunzip"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

const (
	// minBuffer is the size of the first read of a body, in bytes: all that a client
	// that sends nothing more holds.
	minBuffer = 4 << 10

	// maxLayers is how often a payload may be compressed: by the profiler, by the HTTP
	// library and by a proxy.
	maxLayers = 3

	// maxRatio is how many bytes one byte of zstd is expected to become at most.
	maxRatio = 1032

	// workFactor is how many times the size of the decompressed bytes the work on them
	// usually takes: these, the translator's tables and the result. Profiles of the
	// corpus take 6 to 15 times as much, large ones 8.
	workFactor = 8

	// blockSlack is how much decompression may allocate in excess of its limit before it
	// notices, in bytes: a block of zstd.
	blockSlack = 128 << 10

	// lz4Slack is the memory of lz4 in addition to its output, in bytes: a compressed
	// and a plain block of the largest size.
	lz4Slack = 8 << 20

	// maxZstdWindow is the largest window of a zstd frame that is decoded, in bytes:
	// that of zstd --ultra -22.
	maxZstdWindow = 128 << 20
)

// ReadAll reads body to its end. expected is its length in bytes, negative if unknown.
// It reserves bytes before it allocates them, and as they arrive: a client that
// announces much and sends nothing holds next to nothing.
func ReadAll(ctx context.Context, body io.Reader, expected int64, r *Reservation) ([]byte, error) {
	if err := r.limit.CheckBody(expected); err != nil {
		return nil, err
	}
	most := r.limit.maxBody()
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			if err := r.limit.CheckBody(int64(len(buf))); err != nil {
				return nil, err
			}
			size := min(max(2*int64(cap(buf)), minBuffer), most+1) // one byte more, to see the end without growing
			if expected >= int64(len(buf)) {
				size = min(size, expected+1)
			}
			if err := r.Body(ctx, min(int64(cap(buf))+size, 2*most)); err != nil {
				return nil, err
			}
			buf = append(make([]byte, 0, size), buf...)
			if err := r.Body(ctx, size); err != nil {
				return nil, err
			}
		}
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// DecompressedSize starts what a *pproftranslator.LimitError says was counted, if that was the size after decompression.
const DecompressedSize = "decompressed size in bytes"

// compression is a format that a payload may have, recognized by its first bytes. No
// pprof message starts with them.
type compression struct {
	name     string
	magic    []byte
	estimate func(buf []byte) int // of the decompressed size in bytes
	slack    int64                // bytes that decompress may allocate in addition to its output
	// decompress returns at most limit bytes or a *pproftranslator.LimitError. It calls
	// reserve with the bytes that it holds in total, before it allocates them.
	decompress func(buf []byte, limit int, reserve func(bytes int64) error) ([]byte, error)
}

var compressions = []compression{
	{name: "gzip", magic: []byte{0x1f, 0x8b}, estimate: gunzip.Estimate, slack: gunzip.ReaderSize, decompress: decompressGzip},
	{name: "zstd", magic: []byte{0x28, 0xb5, 0x2f, 0xfd}, estimate: estimateZstd, slack: blockSlack, decompress: restarting(estimateZstd, blockSlack, decompressZstd)},
	{name: "lz4", magic: []byte{0x04, 0x22, 0x4d, 0x18}, estimate: estimateLZ4, slack: lz4Slack, decompress: restarting(estimateLZ4, lz4Slack, decompressLZ4)},
}

func compressionOf(buf []byte) *compression {
	for i := range compressions {
		if bytes.HasPrefix(buf, compressions[i].magic) {
			return &compressions[i]
		}
	}
	return nil
}

// Compression returns the name of buf's compression, gzip, zstd or lz4, or "".
func Compression(buf []byte) string {
	if c := compressionOf(buf); c != nil {
		return c.name
	}
	return ""
}

// ExpectedWork is how many bytes the work on a payload is expected to take: its
// decompressed bytes, the translation and the result.
func ExpectedWork(payload []byte) int64 {
	c := compressionOf(payload)
	if c == nil {
		return workFactor * int64(len(payload))
	}
	return workFactor*int64(c.estimate(payload)) + c.slack
}

// Decompress removes all layers of compression. The result has at most limit bytes;
// otherwise the error is a *pproftranslator.LimitError. It calls reserve with the bytes
// that it holds in total, before it allocates them and at the end. buf is not among them;
// it is the result if it is not compressed.
func Decompress(buf []byte, limit int, reserve func(bytes int64) error) ([]byte, error) {
	before := int64(0) // bytes of buf, if they are reserved
	for layer := 1; ; layer++ {
		c := compressionOf(buf)
		if c == nil {
			if len(buf) > limit {
				return nil, &pproftranslator.LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(buf))}
			}
			return buf, nil
		}
		if layer > maxLayers {
			return nil, fmt.Errorf("more than %d layers of compression", maxLayers)
		}
		plain, err := c.decompress(buf, limit, beyond(before, reserve))
		if err != nil {
			return nil, err
		}
		buf, before = plain, int64(cap(plain))
		if err := reserve(before); err != nil {
			return nil, err
		}
	}
}

// restarting calls decompress with the estimated size. If that is too small, it calls it again with
// four times as much, which costs a third more than knowing the size. decompress allocates slack in
// addition to its limit.
func restarting(estimate func(buf []byte) int, slack int64, decompress func(buf []byte, limit int) ([]byte, error)) func([]byte, int, func(int64) error) ([]byte, error) {
	return func(buf []byte, limit int, reserve func(bytes int64) error) ([]byte, error) {
		size := min(max(estimate(buf), minBuffer), limit)
		for {
			if err := reserve(int64(size) + slack); err != nil {
				return nil, err
			}
			plain, err := decompress(buf, size)
			if _, tooLarge := errors.AsType[*pproftranslator.LimitError](err); !tooLarge || size >= limit {
				return plain, err
			}
			size = min(4*size, limit)
		}
	}
}

// estimateZstd is the length in the header of the first frame, as far as so few bytes can become
// that many.
func estimateZstd(buf []byte) int {
	var header zstd.Header
	if err := header.Decode(buf); err != nil || !header.HasFCS {
		return 4 * len(buf)
	}
	return int(min(header.FrameContentSize, uint64(len(buf))*maxRatio))
}

// estimateLZ4 does not read the header, which seldom states the size.
func estimateLZ4(buf []byte) int { return 4 * len(buf) }

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

func decompressZstd(buf []byte, limit int) ([]byte, error) {
	decoder := zstdDecoders.Get().(*zstd.Decoder)
	defer zstdDecoders.Put(decoder)
	// The decoder has no error of its own for output that does not fit. With room for
	// one block more than limit, it has exceeded limit by then.
	plain, err := decoder.DecodeAll(buf, make([]byte, 0, limit+blockSlack))
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(plain) > limit:
		return nil, &pproftranslator.LimitError{What: DecompressedSize, Limit: int64(limit)}
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, &pproftranslator.LimitError{What: "zstd window in bytes", Limit: maxZstdWindow}
	case err != nil:
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return plain, nil
}

func decompressGzip(buf []byte, limit int, reserve func(bytes int64) error) ([]byte, error) {
	plain, err := gunzip.Decompress(buf, limit, reserve)
	if errors.Is(err, gunzip.ErrLimit) {
		return nil, &pproftranslator.LimitError{What: DecompressedSize, Limit: int64(limit)}
	}
	return plain, err
}

// decompressLZ4 reads all lz4 frames of buf, into memory for limit bytes.
func decompressLZ4(buf []byte, limit int) ([]byte, error) {
	plain := bytes.NewBuffer(make([]byte, 0, limit+1+bytes.MinRead)) // so that it never grows
	n, err := plain.ReadFrom(io.LimitReader(lz4.NewReader(bytes.NewReader(buf)), int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("lz4: after %d decompressed bytes: %s", n, strings.TrimPrefix(err.Error(), "lz4: "))
	}
	if n > int64(limit) {
		return nil, &pproftranslator.LimitError{What: DecompressedSize, Limit: int64(limit)}
	}
	return plain.Bytes(), nil
}
