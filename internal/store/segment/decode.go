// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// minDecoderMemory is the memory that a zstd decoder may always use for its window, in bytes.
const minDecoderMemory = 8 << 20

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// readRecord reads the record at an offset. The error is r.source.file.err if the file cannot be
// read; otherwise it says why no complete record starts at the offset.
func (r *Reader) readRecord(at int64) (record []byte, err error) {
	r.source.seek(at)
	record, err = r.decode()
	if err == nil && r.magic != nil {
		record, err = r.unframe(record)
	}
	switch {
	case r.source.file.err != nil:
		return nil, r.source.file.err
	case err != nil:
		return nil, err
	case len(record) > r.max:
		return nil, &SizeError{int64(len(record)), r.max}
	case r.format == JSON && !json.Valid(record):
		return nil, errors.New("line is not valid JSON")
	}
	return record, r.format.checkRecord(record)
}

// SizeError means that a record is longer than NewReader allows.
type SizeError struct {
	Size int64 // 0 if it is not known
	Max  int
}

func (e *SizeError) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("record has more than %d bytes", e.Max)
	}
	return fmt.Sprintf("record has %d bytes, more than %d", e.Size, e.Max)
}

// incomplete returns an io.ErrUnexpectedEOF: the record may still be being written.
func incomplete(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, io.ErrUnexpectedEOF)...)
}

func (r *Reader) readFull(p []byte) error {
	if n, err := io.ReadFull(r.source, p); err != nil {
		return incomplete("file ends after %d of %d bytes", n, len(p))
	}
	return nil
}

// line reads up to the next line feed.
func (r *Reader) line() ([]byte, error) {
	r.record = r.record[:0]
	tooLong := false
	for {
		part, err := r.source.ReadSlice(lineFeed)
		if tooLong = tooLong || len(r.record)+len(part) > r.max+1; !tooLong {
			r.record = append(r.record, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case tooLong:
			return nil, fmt.Errorf("line has more than %d bytes", r.max)
		case err != nil:
			return nil, incomplete("file ends after %d bytes of a line", len(r.record))
		default:
			return r.record[:len(r.record)-1], nil
		}
	}
}

// zstdFrame reads the content of a frame.
func (r *Reader) zstdFrame() ([]byte, error) {
	r.record = r.record[:0]
	if err := r.readFrame(); err != nil {
		return nil, err
	}
	if r.zstd == nil || r.decodes != r.max {
		r.decodes = r.max
		r.zstd, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(max(r.max+prefixSize, minDecoderMemory)))) // an error would be of the options
	}
	content, err := r.zstd.DecodeAll(r.frame, r.record)
	r.record = content
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return nil, &SizeError{0, r.max}
	case err != nil:
		return nil, fmt.Errorf("zstd frame: %w", err)
	}
	return content, nil
}

// readFrame reads one compressed frame into r.frame, by the sizes of its blocks: the
// decoder does not say where a frame ends.
func (r *Reader) readFrame() error {
	const (
		blockHeader = 3
		maxBlock    = 128 << 10
		checksum    = 4
		runLength   = 1 // a block type
	)
	head, _ := r.source.Peek(zstd.HeaderMaxSize) // fewer bytes near the end
	var header zstd.Header
	if err := header.Decode(head); err != nil {
		return fmt.Errorf("zstd header: %w", err)
	}
	if header.Skippable {
		return fmt.Errorf("skippable frame: %w", ErrNoIndex)
	}
	if !header.HasCheckSum {
		return errors.New("zstd frame without a checksum")
	}
	r.frame = r.frame[:0]
	if err := r.readMore(header.HeaderSize); err != nil {
		return err
	}
	decoded := uint64(0) // upper bound of the frame's content
	for last := false; !last; decoded += maxBlock {
		if err := r.readMore(blockHeader); err != nil {
			return err
		}
		h := r.frame[len(r.frame)-blockHeader:]
		bits := uint32(h[0]) | uint32(h[1])<<8 | uint32(h[2])<<16
		size := int(bits >> 3)
		last = bits&1 != 0
		if size > maxBlock {
			return fmt.Errorf("zstd block has %d bytes, more than %d", size, maxBlock)
		}
		if bits>>1&3 == runLength {
			size = 1
		}
		if err := r.readMore(size); err != nil {
			return err
		}
		if maxFrame := r.max + r.max/8 + maxBlock; len(r.frame) > maxFrame {
			return &SizeError{0, r.max}
		}
	}
	// The decoder would allocate the size that the header claims.
	if header.HasFCS && header.FrameContentSize > decoded {
		return fmt.Errorf("zstd header has a content of %d bytes, its blocks at most %d", header.FrameContentSize, decoded)
	}
	return r.readMore(checksum)
}

// readMore appends n bytes of the file to r.frame.
func (r *Reader) readMore(n int) error {
	had := len(r.frame)
	r.frame = slices.Grow(r.frame, n)[:had+n]
	return r.readFull(r.frame[had:])
}

// unframe removes the length before a record.
func (r *Reader) unframe(content []byte) ([]byte, error) {
	n := len(content)
	if n < prefixSize || int64(binary.BigEndian.Uint32(content)) != int64(n-prefixSize) {
		return nil, fmt.Errorf("content of %d bytes is not a length and a record of that length", n)
	}
	return content[prefixSize:], nil
}
