// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// Index says where the records of a segment are, and what its writer knows about them.
type Index struct {
	Records []Record // in the order of their offsets, without overlap
	// Tables is what the entries of several records refer to. This package does not interpret it.
	Tables []byte
	// Inputs are the segments that this one replaces.
	Inputs []Input
}

// Record is a record in a segment.
type Record struct {
	Offset, Length int64 // of its bytes in the file
	// Entry describes the record. This package does not interpret it.
	Entry []byte
}

// Input is a segment whose records are in another one.
type Input struct {
	Name string // relative to the directory of the other one, with slashes
	Size int64
	// Damaged: some of its records could not be read, and are in this file only.
	Damaged bool
}

// ErrNoIndex says that a segment has no index, or one that is damaged.
var ErrNoIndex = errors.New("no valid index")

const (
	indexVersion = 1
	magicSize    = 4
	headerSize   = magicSize + 4
	trailerSize  = 8 + 8 + 16 // hexadecimal digits
	// maxFrame keeps 0xFD out of the last byte of a frame's length.
	maxFrame = 1 << 28
	// TailSize is how much of the end of a segment to read for its index: most indexes are shorter.
	TailSize = 64 << 10
)

var (
	skippableMagic = []byte{0x50, 0x2a, 0x4d, 0x18}
	castagnoli     = crc32.MakeTable(crc32.Castagnoli)
)

// AppendIndex appends the frame of an index that starts at an offset of the file.
func AppendIndex(to []byte, x *Index, offset int64) ([]byte, error) {
	plain := binary.AppendUvarint(nil, indexVersion)
	plain = binary.AppendUvarint(plain, uint64(len(x.Inputs)))
	for _, input := range x.Inputs {
		plain = appendBytes(plain, []byte(input.Name))
		plain = binary.AppendUvarint(plain, uint64(input.Size))
		damaged := byte(0)
		if input.Damaged {
			damaged = 1
		}
		plain = append(plain, damaged)
	}
	plain = appendBytes(plain, x.Tables)
	plain = binary.AppendUvarint(plain, uint64(len(x.Records)))
	end := int64(0)
	for _, r := range x.Records {
		plain = binary.AppendUvarint(plain, uint64(r.Offset-end))
		plain = binary.AppendUvarint(plain, uint64(r.Length))
		plain = appendBytes(plain, r.Entry)
		end = r.Offset + r.Length
	}
	body := escape(zstdEncoder().EncodeAll(plain, nil))
	if len(body)+trailerSize >= maxFrame {
		return to, fmt.Errorf("index has %d bytes: must have less than %d", len(body), maxFrame)
	}
	start := len(to)
	to = append(to, skippableMagic...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(body)+trailerSize))
	to = append(to, body...)
	length, end16 := fmt.Appendf(nil, "%08x", len(body)), fmt.Appendf(nil, "%016x", offset)
	sum := checksum(to[start:], length, end16)
	to = append(to, length...)
	to = fmt.Appendf(to, "%08x", sum)
	return append(to, end16...), nil
}

func appendBytes(to, data []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(data))), data...)
}

func checksum(parts ...[]byte) (sum uint32) {
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

const (
	forbidden = 0xfd // the last byte of zstd's magic
	escaping  = 0xfe
)

// escape replaces 0xFD and 0xFE by two bytes each.
func escape(data []byte) []byte {
	escaped := make([]byte, 0, len(data)+len(data)/64)
	for _, b := range data {
		if b == forbidden || b == escaping {
			escaped = append(escaped, escaping, b-forbidden)
		} else {
			escaped = append(escaped, b)
		}
	}
	return escaped
}

func unescape(data []byte) []byte {
	plain := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] == escaping && i+1 < len(data) {
			i++
			plain = append(plain, data[i]+forbidden)
		} else {
			plain = append(plain, data[i])
		}
	}
	return plain
}

// ReadIndex reads the index at the end of a segment of size bytes, whose text takes at most limit bytes of memory. end is where
// the records end. The error wraps ErrNoIndex unless the file could not be read.
func ReadIndex(from io.ReaderAt, size, limit int64) (x *Index, end int64, err error) {
	tail := make([]byte, min(size, TailSize, limit))
	if err := readFull(from, tail, size-int64(len(tail))); err != nil {
		return nil, size, err
	}
	length, end, ok := parseTrailer(tail)
	frame := int64(headerSize) + length + trailerSize
	switch {
	case !ok || end+frame != size:
		return nil, size, ErrNoIndex
	case frame > limit:
		return nil, size, fmt.Errorf("%w: it has %d bytes, more than %d", ErrNoIndex, frame, limit)
	case frame > int64(len(tail)):
		tail = make([]byte, frame)
		if err := readFull(from, tail, end); err != nil {
			return nil, size, err
		}
	}
	x, err = parseFrame(tail[int64(len(tail))-frame:], end, limit)
	if err != nil {
		return nil, size, err
	}
	return x, end, nil
}

// ReadInputs reads the index at the start of a segment that was made of others. The error wraps ErrNoIndex unless the file could
// not be read.
func ReadInputs(from io.ReaderAt, size, limit int64) ([]Input, error) {
	frame, err := headFrame(from, size, limit)
	if err != nil {
		return nil, err
	}
	x, err := parseFrame(frame, 0, limit)
	if err != nil {
		return nil, err
	}
	return x.Inputs, nil
}

// headFrame reads the skippable frame at the start of a file.
func headFrame(from io.ReaderAt, size, limit int64) ([]byte, error) {
	header := make([]byte, headerSize)
	if size < headerSize+trailerSize {
		return nil, ErrNoIndex
	}
	if err := readFull(from, header, 0); err != nil {
		return nil, err
	}
	frame := headerSize + int64(binary.LittleEndian.Uint32(header[magicSize:]))
	if !bytes.HasPrefix(header, skippableMagic) || frame > min(size, limit) {
		return nil, ErrNoIndex
	}
	data := make([]byte, frame)
	return data, readFull(from, data, 0)
}

func readFull(from io.ReaderAt, p []byte, offset int64) error {
	n, err := from.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// parseTrailer reads the numbers at the end of a frame.
func parseTrailer(frame []byte) (length, end int64, ok bool) {
	if len(frame) < headerSize+trailerSize {
		return 0, 0, false
	}
	trailer := string(frame[len(frame)-trailerSize:])
	length, lengthErr := strconv.ParseInt(trailer[:8], 16, 64)
	end, endErr := strconv.ParseInt(trailer[16:], 16, 64)
	return length, end, lengthErr == nil && endErr == nil && length >= 0 && end >= 0 && length < maxFrame && end <= 1<<60
}

// parseFrame reads the frame of an index that must start at an offset. The error wraps ErrNoIndex.
func parseFrame(frame []byte, at, limit int64) (*Index, error) {
	length, end, ok := parseTrailer(frame)
	body := len(frame) - trailerSize
	if !ok || end != at || length != int64(body-headerSize) {
		return nil, ErrNoIndex
	}
	trailer := frame[body:]
	sum, err := strconv.ParseUint(string(trailer[8:16]), 16, 32)
	if err != nil || uint32(sum) != checksum(frame[:body], trailer[:8], trailer[16:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrNoIndex)
	}
	if !bytes.HasPrefix(frame, skippableMagic) || int(binary.LittleEndian.Uint32(frame[magicSize:])) != len(frame)-headerSize {
		return nil, ErrNoIndex
	}
	decoder, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(uint64(max(limit, minDecoderMemory)))) // an error would be of the options
	defer decoder.Close()
	plain, err := decoder.DecodeAll(unescape(frame[headerSize:body]), nil)
	if err == nil && int64(len(plain)) > limit {
		err = fmt.Errorf("it takes %d bytes, more than %d", len(plain), limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoIndex, err)
	}
	x, err := parseIndex(plain, end)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoIndex, err)
	}
	return x, nil
}

// parseIndex reads the decompressed body.
func parseIndex(plain []byte, end int64) (*Index, error) {
	n := numbers{rest: plain}
	if version := n.uint(); version != indexVersion {
		return nil, fmt.Errorf("its version is %d: must be %d", version, indexVersion)
	}
	x := &Index{}
	for range n.count() {
		x.Inputs = append(x.Inputs, Input{Name: string(n.bytes()), Size: n.int(), Damaged: n.uint() == 1})
	}
	x.Tables = n.bytes()
	records := n.count()
	x.Records = make([]Record, 0, records)
	at := int64(0)
	for range records {
		r := Record{Offset: at + n.int(), Length: n.int(), Entry: n.bytes()}
		if r.Length <= 0 || r.Offset < at || r.Length > end-r.Offset {
			return nil, fmt.Errorf("a record of %d bytes at byte %d: must be between byte %d and %d", r.Length, r.Offset, at, end)
		}
		at = r.Offset + r.Length
		x.Records = append(x.Records, r)
	}
	if n.failed || len(n.rest) > 0 {
		return nil, errors.New("it is malformed")
	}
	return x, nil
}

// numbers reads a body. After a failure all numbers are 0.
type numbers struct {
	rest   []byte
	failed bool
}

func (n *numbers) uint() uint64 {
	v, size := binary.Uvarint(n.rest)
	if size <= 0 {
		n.failed, n.rest = true, nil
		return 0
	}
	n.rest = n.rest[size:]
	return v
}

func (n *numbers) int() int64 { return int64(n.uint() & (1<<62 - 1)) }

// count reads the number of elements, each of which has a byte or more.
func (n *numbers) count() int {
	v := n.uint()
	if v > uint64(len(n.rest)) {
		n.failed, n.rest = true, nil
		return 0
	}
	return int(v)
}

func (n *numbers) bytes() []byte {
	size := n.count()
	data := n.rest[:size:size]
	n.rest = n.rest[size:]
	return data
}
