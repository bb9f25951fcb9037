// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// damage says why there is no whole record at a place. All else that goes wrong
// while reading is an error of the file system.
type damage struct{ reason string }

func (d damage) Error() string { return d.reason }

func damagef(format string, args ...any) error { return damage{reason: fmt.Sprintf(format, args...)} }

// leastDecoder is what a decoder may take in any case, for its window, in bytes.
const leastDecoder = 8 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b, 0x08}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// scan reads the record at an offset, and returns it and the offset behind it.
func (r *Reader) scan(at int64) (record []byte, next int64, err error) {
	r.source.seek(at)
	switch {
	case r.format.Compression == Gzip:
		record, err = r.gzipMember()
	case r.format.Compression == Zstd:
		record, err = r.zstdFrame()
	case r.format.framing() == Lines:
		record, err = r.line()
	case r.format.framing() == Bare:
		record, err = r.rest()
	default:
		record, err = r.prefixed()
		if err != nil && at == 0 && r.format.Framing == 0 {
			if bare, isBare := r.bareFile(); isBare {
				record, err = bare, nil
			}
		}
	}
	if r.source.failed() != nil {
		return nil, 0, r.source.failed()
	}
	if err == nil {
		err = r.check(record)
	}
	if err != nil {
		return nil, 0, err
	}
	return record, r.source.offset(), nil
}

// check returns damage if the record cannot be one.
func (r *Reader) check(record []byte) error {
	if len(record) > r.max {
		return damagef("record has %d bytes, more than %d", len(record), r.max)
	}
	if err := r.format.Content.checkRecord(record); err != nil {
		return damage{reason: err.Error()}
	}
	if r.format.Content == OTLPJSON && !json.Valid(record) {
		return damage{reason: "line is not valid JSON"}
	}
	return nil
}

// prefixed reads a length and a record.
func (r *Reader) prefixed() ([]byte, error) {
	at := r.source.offset()
	head := r.source.peek(prefixSize)
	if len(head) < prefixSize {
		return nil, damagef("file ends after %d of the %d bytes of a length", len(head), prefixSize)
	}
	length := binary.BigEndian.Uint32(head)
	switch {
	case length == 0:
		return nil, damage{reason: "length of a record is 0"}
	case int64(length) > int64(r.max):
		return nil, damagef("length of a record is %d, more than %d", length, r.max)
	case at+prefixSize+int64(length) > r.source.size:
		return nil, damagef("file ends after %d of the %d bytes of a record", r.source.size-at-prefixSize, length)
	}
	r.source.seek(at + prefixSize)
	return r.read(int64(length))
}

// rest reads what is left of the file.
func (r *Reader) rest() ([]byte, error) {
	left := r.source.size - r.source.offset()
	if left > int64(r.max) {
		return nil, damagef("record has %d bytes, more than %d", left, r.max)
	}
	return r.read(left)
}

// bareFile reads the whole file if it is one record.
func (r *Reader) bareFile() ([]byte, bool) {
	r.source.seek(0)
	if head := r.source.peek(1); len(head) == 0 || head[0]&7 != lengthDelimited {
		return nil, false
	}
	record, err := r.rest()
	return record, err == nil && r.check(record) == nil
}

// read reads n bytes, which the file is known to have.
func (r *Reader) read(n int64) ([]byte, error) {
	r.record = slices.Grow(r.record[:0], int(n))[:n]
	if got, err := io.ReadFull(r.source.buffered, r.record); err != nil {
		return nil, damagef("file ends after %d of the %d bytes of a record", got, n)
	}
	return r.record, nil
}

// line reads up to the next line feed.
func (r *Reader) line() ([]byte, error) {
	r.record = r.record[:0]
	for {
		part, err := r.source.buffered.ReadSlice(lineFeed)
		if len(r.record)+len(part) > r.max+1 {
			return nil, damagef("line has more than %d bytes", r.max)
		}
		r.record = append(r.record, part...)
		if err == nil {
			return r.record[:len(r.record)-1], nil
		}
		if errors.Is(err, io.EOF) {
			return nil, damagef("file ends after %d bytes of a line", len(r.record))
		}
	}
}

// gzipMember reads one member.
func (r *Reader) gzipMember() ([]byte, error) {
	if r.gzip == nil {
		r.gzip = new(gzip.Reader)
	}
	r.record = r.record[:0]
	if err := r.gzip.Reset(r.source.buffered); err != nil {
		return nil, damagef("gzip header: %v", err)
	}
	r.gzip.Multistream(false)
	content := bytes.NewBuffer(r.record)
	limit := int64(r.max) + prefixSize
	n, err := content.ReadFrom(io.LimitReader(r.gzip, limit+1))
	r.record = content.Bytes()
	if err != nil {
		return nil, damagef("gzip member: %v", err)
	}
	if n > limit {
		return nil, damagef("gzip member has more than %d bytes", limit)
	}
	return r.unframe(r.record)
}

// zstdFrame reads one frame.
func (r *Reader) zstdFrame() ([]byte, error) {
	r.record = r.record[:0]
	if err := r.readFrame(); err != nil {
		return nil, err
	}
	if r.zstd == nil {
		decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(uint64(max(r.max+prefixSize, leastDecoder))))
		if err != nil {
			return nil, err
		}
		r.zstd = decoder
	}
	content, err := r.zstd.DecodeAll(r.frame, r.record)
	r.record = content
	if err != nil {
		return nil, damagef("zstd frame: %v", err)
	}
	return r.unframe(content)
}

// readFrame reads one compressed frame into r.frame, by the sizes of its blocks.
func (r *Reader) readFrame() error {
	const (
		blockHeader = 3
		maxBlock    = 128 << 10
		checksum    = 4
	)
	head := r.source.peek(zstd.HeaderMaxSize)
	var header zstd.Header
	if err := header.Decode(head); err != nil {
		return damagef("zstd header: %v", err)
	}
	if header.Skippable || !header.HasCheckSum {
		return damage{reason: "zstd frame without a checksum"}
	}
	r.frame = r.frame[:0]
	if err := r.more(header.HeaderSize); err != nil {
		return err
	}
	decoded := int64(0) // upper bound of the frame's content
	for last := false; !last; {
		if err := r.more(blockHeader); err != nil {
			return err
		}
		h := r.frame[len(r.frame)-blockHeader:]
		bits := uint32(h[0]) | uint32(h[1])<<8 | uint32(h[2])<<16
		size := int(bits >> 3)
		last = bits&1 != 0
		if size > maxBlock {
			return damagef("zstd block has %d bytes, more than %d", size, maxBlock)
		}
		if runLength := bits>>1&3 == 1; runLength {
			size = 1
		}
		if err := r.more(size); err != nil {
			return err
		}
		if decoded += maxBlock; len(r.frame) > r.max+r.max/8+maxBlock {
			return damagef("zstd frame has more than %d bytes", r.max)
		}
	}
	// A header that promises more than the blocks can hold would make the decoder
	// allocate it all.
	if header.HasFCS && header.FrameContentSize > uint64(decoded) {
		return damagef("zstd header has a content of %d bytes, its blocks at most %d", header.FrameContentSize, decoded)
	}
	return r.more(checksum)
}

// more appends n bytes of the file to r.frame.
func (r *Reader) more(n int) error {
	had := len(r.frame)
	r.frame = slices.Grow(r.frame, n)[:had+n]
	if got, err := io.ReadFull(r.source.buffered, r.frame[had:]); err != nil {
		return damagef("file ends after %d bytes of a zstd frame", had+got)
	}
	return nil
}

// unframe takes the record out of its framing.
func (r *Reader) unframe(content []byte) ([]byte, error) {
	switch r.format.framing() {
	case Bare:
		return content, nil
	case Lines:
		if len(content) == 0 || content[len(content)-1] != lineFeed {
			return nil, damage{reason: "content does not end in a line feed"}
		}
		return content[:len(content)-1], nil
	default:
		if len(content) >= prefixSize && int64(binary.BigEndian.Uint32(content)) == int64(len(content)-prefixSize) {
			return content[prefixSize:], nil
		}
		if r.format.Framing == 0 && isMessage(content) {
			return content, nil
		}
		return nil, damagef("content of %d bytes is not a length and a record of that length", len(content))
	}
}
