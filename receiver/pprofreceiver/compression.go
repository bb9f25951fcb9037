// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// contentEncodings are the values of Content-Encoding that are understood, as
// compression_algorithms names them: "" is no compression.
var contentEncodings = []string{"", "gzip", "zstd"}

const (
	// maxLayers is how many times over a payload may be compressed: by the
	// client's pprof library, by its HTTP library, by a proxy.
	maxLayers = 3

	// maxDeflateRatio is the most that one byte of gzip can become.
	maxDeflateRatio = 1032

	// blockSlack is what decompressing may take beyond its limit before it
	// notices, in bytes: a block of zstd.
	blockSlack = 128 << 10

	// lz4Slack is what decoding lz4 takes beside the output, in bytes: a compressed
	// and a plain block of the largest size.
	lz4Slack = 8 << 20

	// maxZstdWindow is the largest window of a zstd frame that is decoded, in
	// bytes: that of zstd's highest level with --ultra.
	maxZstdWindow = 128 << 20
)

var errTooManyLayers = fmt.Errorf("compressed more than %d times over", maxLayers)

// compression is a format that a payload may come in, known by its first bytes.
type compression struct {
	name  string
	magic []byte
	// estimate is the likely decompressed size in bytes. It may be wrong.
	estimate func(buf []byte) int
	// slack is what decompress may allocate beside the plain bytes.
	slack int64
	// decompress returns the plain bytes, at most limit, or a
	// *pproftranslator.LimitError. It allocates in proportion to limit.
	decompress func(buf []byte, limit int) ([]byte, error)
}

var compressions = []compression{
	{name: "gzip", magic: []byte{0x1f, 0x8b}, estimate: estimateGzip, slack: blockSlack, decompress: pproftranslator.Decompress},
	{name: "zstd", magic: []byte{0x28, 0xb5, 0x2f, 0xfd}, estimate: estimateZstd, slack: blockSlack, decompress: decompressZstd},
	{name: "lz4", magic: []byte{0x04, 0x22, 0x4d, 0x18}, estimate: estimateLZ4, slack: lz4Slack, decompress: decompressLZ4},
}

// compressionOf returns the format of buf, or nil when it is not compressed. No
// pprof message begins with these bytes.
func compressionOf(buf []byte) *compression {
	for i := range compressions {
		if bytes.HasPrefix(buf, compressions[i].magic) {
			return &compressions[i]
		}
	}
	return nil
}

// unpack takes off all layers of compression. The plain bytes are at most limit;
// more is a *pproftranslator.LimitError. The reservation holds buf when it
// begins, and the result when it ends; in between, what is needed for the layer
// at hand, before that is allocated.
func unpack(ctx context.Context, buf []byte, limit int, held *reservation) ([]byte, error) {
	for layer := 1; ; layer++ {
		format := compressionOf(buf)
		if format == nil {
			if len(buf) > limit {
				return nil, &pproftranslator.LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(buf))}
			}
			return buf, nil
		}
		if layer > maxLayers {
			return nil, errTooManyLayers
		}
		plain, err := format.unpack(ctx, buf, limit, held)
		if err != nil {
			return nil, err
		}
		if err := held.resize(ctx, int64(cap(plain))); err != nil {
			return nil, err
		}
		buf = plain
	}
}

// unpack takes off one layer. When the estimate was too small, it begins again
// with four times as much, which costs a third more than knowing the size.
func (c *compression) unpack(ctx context.Context, buf []byte, limit int, held *reservation) ([]byte, error) {
	size := min(max(c.estimate(buf), smallestBuffer), limit)
	for {
		if err := held.resize(ctx, int64(cap(buf))+int64(size)+c.slack); err != nil {
			return nil, err
		}
		plain, err := c.decompress(buf, size)
		var over *pproftranslator.LimitError
		if !errors.As(err, &over) || size >= limit {
			return plain, err
		}
		size = min(4*size, limit)
	}
}

// estimateGzip believes the length in the trailer of the last member, as far as
// so few bytes could become that many.
func estimateGzip(buf []byte) int {
	const trailer = 4
	if len(buf) < trailer {
		return 0
	}
	length := int64(binary.LittleEndian.Uint32(buf[len(buf)-trailer:]))
	return int(min(length, int64(len(buf))*maxDeflateRatio))
}

// estimateZstd believes the length in the header of the first frame, within the
// same ratio.
func estimateZstd(buf []byte) int {
	var header zstd.Header
	if err := header.Decode(buf); err != nil || !header.HasFCS {
		return 4 * len(buf)
	}
	return int(min(header.FrameContentSize, uint64(len(buf))*maxDeflateRatio))
}

// zstdDecoders holds decoders that decode straight into their output, so that
// they keep no window of their own.
var zstdDecoders = sync.Pool{New: func() any {
	decoder, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxZstdWindow),
		zstd.WithDecodeAllCapLimit(true),
	)
	if err != nil {
		return err
	}
	return decoder
}}

func decompressZstd(buf []byte, limit int) ([]byte, error) {
	pooled := zstdDecoders.Get()
	decoder, ok := pooled.(*zstd.Decoder)
	if !ok {
		return nil, pooled.(error)
	}
	defer zstdDecoders.Put(decoder)
	// The decoder has no error of its own for output that does not fit, but with
	// room for one block more than limit, it has gone beyond limit by then.
	plain, err := decoder.DecodeAll(buf, make([]byte, 0, limit+blockSlack))
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded) || len(plain) > limit:
		return nil, &pproftranslator.LimitError{What: "decompressed size in bytes", Limit: int64(limit)}
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return nil, &pproftranslator.LimitError{What: "zstd window in bytes", Limit: maxZstdWindow}
	case err != nil:
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return plain, nil
}

// estimateLZ4 does without the header, which seldom has the size.
func estimateLZ4(buf []byte) int { return 4 * len(buf) }

// decompressLZ4 reads all lz4 frames of buf.
func decompressLZ4(buf []byte, limit int) ([]byte, error) {
	plain := bytes.NewBuffer(make([]byte, 0, limit+1+bytes.MinRead))
	n, err := plain.ReadFrom(io.LimitReader(lz4.NewReader(bytes.NewReader(buf)), int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("lz4: after %d decompressed bytes: %w", n, err)
	}
	if n > int64(limit) {
		return nil, &pproftranslator.LimitError{What: "decompressed size in bytes", Limit: int64(limit)}
	}
	return plain.Bytes(), nil
}
