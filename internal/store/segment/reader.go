// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// readBuffer is the size in bytes of reads from the file, unless that is smaller.
	readBuffer = 64 << 10
	// minReadBuffer has room for the header of a zstd frame.
	minReadBuffer = 64
)

// DamageError describes a part of a file without a complete record.
type DamageError struct {
	// Offset is where the damage starts. Length is the number of bytes from there to the
	// next complete record or line, or to the end.
	Offset, Length int64
	// Reason wraps io.ErrUnexpectedEOF if the file ends inside a record.
	Reason error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("damaged at byte %d: %v; skipped %d bytes", e.Offset, e.Reason, e.Length)
}

func (e *DamageError) Unwrap() error { return e.Reason }

// Reader reads the records of one file, up to the size that the file had when the Reader
// was made. It is not safe for concurrent use.
type Reader struct {
	format Format
	max    int
	size   int64
	source *source
	decode func() ([]byte, error) // reads one record, or the content of one compressed frame
	magic  []byte                 // how each frame of a compressed file starts

	at    int64 // where the next record starts
	start int64 // where the last record starts
	*memory
	readers *Readers // get the memory back
	// wasted is the bytes read in failed attempts to find a record, minus wastePerByte for
	// each byte skipped. findRecord makes no attempt unless wasted < freeWaste.
	wasted int64
}

// Readers make Readers that use the memory of those that were closed. The zero value is ready for use, and safe for concurrent use.
type Readers struct{ idle sync.Pool }

// memory is that of a Reader.
type memory struct {
	record   []byte // one record
	frame    []byte // one compressed frame
	buffered *bufio.Reader
	zstd     *zstd.Decoder
	decodes  int // the most bytes of a record that the decoder decodes
}

// maxKept bounds the size in bytes of the memory that is kept.
const maxKept = 4 << 20

// NewReader is Readers.New for a Reader alone.
func NewReader(from io.ReaderAt, start, end int64, format Format, maxRecord int) *Reader {
	return new(Readers).New(from, start, end, format, maxRecord)
}

// New reads records in a format from the bytes of a file from start to end. The memory of the Reader is about three times
// maxRecord bytes; longer records are reported as damage.
func (rs *Readers) New(from io.ReaderAt, start, end int64, format Format, maxRecord int) *Reader {
	file := &section{SectionReader: io.NewSectionReader(from, 0, end)}
	m, _ := rs.idle.Get().(*memory)
	if m == nil {
		m = &memory{}
	}
	if size := int(max(minReadBuffer, min(readBuffer, end-start))); m.buffered == nil || m.buffered.Size() < size {
		m.buffered = bufio.NewReaderSize(file, size)
	} else {
		m.buffered.Reset(file)
	}
	r := &Reader{format: format, max: maxRecord, size: end, source: &source{m.buffered, file}, at: start, memory: m, readers: rs}
	if format == JSON {
		r.decode = r.line
	} else {
		r.decode, r.magic = r.zstdFrame, zstdMagic
	}
	return r
}

// Close gives the memory to other Readers: records are not valid after it.
func (r *Reader) Close() {
	m := r.memory
	if m == nil {
		return
	}
	r.memory = nil
	m.buffered.Reset(nil)
	if cap(m.record)+cap(m.frame) > maxKept {
		m.record, m.frame = nil, nil
	}
	r.readers.idle.Put(m)
}

// Offset is where the next call of Next starts to read.
func (r *Reader) Offset() int64 { return r.at }

// Next returns the next record, which is valid until the next call.
//
// At the end the error is io.EOF. A *DamageError reports a part of the file that was
// skipped; the next call continues after it. Any other error is from reading the file, and
// is final. Indexes are skipped; a damaged one is reported as a *DamageError that wraps ErrNoIndex.
func (r *Reader) Next() ([]byte, error) {
	for r.at < r.size {
		from := r.at
		if r.magic != nil {
			end, err := r.skipIndex()
			if err != nil {
				return nil, err
			}
			if end > 0 {
				r.at = end
				continue
			}
		}
		r.start = from
		record, reason := r.readRecord(from)
		r.at = r.source.offset() // after a damaged line, too
		if reason == nil {
			return record, nil
		}
		if r.magic != nil {
			r.at = r.findRecord(from)
		}
		if r.source.file.err != nil {
			return nil, r.source.file.err
		}
		return nil, &DamageError{Offset: from, Length: r.at - from, Reason: reason}
	}
	return nil, io.EOF
}

// skipIndex returns where the index ends that starts at the next byte, or 0 if there is none.
func (r *Reader) skipIndex() (end int64, err error) {
	r.source.seek(r.at)
	header, _ := r.source.Peek(headerSize)
	if len(header) < headerSize || !bytes.HasPrefix(header, skippableMagic) {
		return 0, r.source.file.err
	}
	length := headerSize + int64(binary.LittleEndian.Uint32(header[magicSize:]))
	if length > r.size-r.at || length > maxFrame {
		return 0, nil
	}
	frame := make([]byte, length)
	if err := readFull(r.source.file, frame, r.at); err != nil {
		return 0, err
	}
	if _, err := parseFrame(frame, r.at, maxFrame); err != nil {
		return 0, nil //nolint:nilerr // it is no frame of ours
	}
	return r.at + length, nil
}

// Start is where the record starts that Next returned last.
func (r *Reader) Start() int64 { return r.start }

// All yields each record, and each error but io.EOF. A record is valid until the next
// one. It stops after an error that is not a *DamageError.
func (r *Reader) All() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			record, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(record, err) {
				return
			}
			if _, damaged := errors.AsType[*DamageError](err); err != nil && !damaged {
				return
			}
		}
	}
}

const (
	// freeWaste is how many bytes findRecord may always read in failed attempts.
	freeWaste = 16 << 20
	// wastePerByte is how many more it may read for each byte that it skips.
	wastePerByte = 4
	// decodedPerRead is how many decompressed bytes count as one byte read.
	decodedPerRead = 64
)

// findRecord finds the next index or zstd frame that is a complete record. Since
// compressed data may contain the magic number, an attempt to read one there may fail.
// Failed attempts read at most freeWaste + wastePerByte * (bytes skipped) bytes, plus the last
// attempt. After damage that is no longer than a record, the next record is always tried.
func (r *Reader) findRecord(from int64) int64 {
	r.addWaste(from)
	for at := from + 1; ; at++ {
		found := r.source.find(r.magic, at, r.size)
		r.wasted -= wastePerByte * (found - at + 1)
		at = found
		if at == r.size {
			return at
		}
		if r.wasted >= freeWaste {
			continue
		}
		if _, err := r.readRecord(at); err == nil || r.source.file.err != nil {
			return at
		}
		r.addWaste(at)
	}
}

// addWaste counts a failed attempt at an offset: the bytes read, the bytes that they were
// decompressed to, and the bytes that must be read again.
func (r *Reader) addWaste(at int64) {
	if read := r.source.offset() - at; read > 0 {
		r.wasted += read + int64(len(r.record))/decodedPerRead + min(readBuffer, r.size-at)
	}
}

// section is the part of a file to read.
type section struct {
	*io.SectionReader
	err error // of the file system
}

func (s *section) Read(p []byte) (int, error) {
	n, err := s.SectionReader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// source is a buffered reader of a file that can continue at any place.
type source struct {
	*bufio.Reader
	file *section
}

// offset is where the next byte comes from.
func (s *source) offset() int64 {
	at, _ := s.file.Seek(0, io.SeekCurrent) // never fails
	return at - int64(s.Buffered())
}

// seek continues at an offset of 0 or more.
func (s *source) seek(at int64) {
	if ahead := at - s.offset(); ahead >= 0 && ahead <= int64(s.Buffered()) {
		_, _ = s.Discard(int(ahead)) // never fails: the bytes are there
		return
	}
	_, _ = s.file.Seek(at, io.SeekStart) // never fails
	s.Reset(s.file)
}

// find returns the offset of the next occurrence of pattern, or size.
func (s *source) find(pattern []byte, at, size int64) int64 {
	s.seek(at)
	for {
		if head, _ := s.Peek(len(pattern)); len(head) < len(pattern) {
			return size
		}
		buffered, _ := s.Peek(s.Buffered())
		if i := bytes.Index(buffered, pattern); i >= 0 {
			return s.offset() + int64(i)
		}
		_, _ = s.Discard(len(buffered) - len(pattern) + 1) // never fails: the bytes are there
	}
}

// Record reads one record, whose place an index has, valid until the next call. The error is a *DamageError unless the file could not
// be read.
func (r *Reader) Record(at Record) ([]byte, error) {
	data, err := r.readRecord(at.Offset)
	if r.source.file.err != nil {
		return nil, r.source.file.err
	}
	if err == nil && r.source.offset() != at.Offset+at.Length {
		err = errors.New("is not one record, as the index says")
	}
	if err != nil {
		return nil, &DamageError{Offset: at.Offset, Length: at.Length, Reason: err}
	}
	return data, nil
}
