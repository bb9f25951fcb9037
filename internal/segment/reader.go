// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// ReaderOptions say how to read a file; the zero value suits all files of this package.
type ReaderOptions struct {
	// MaxRecordSize bounds the memory that reading takes: it is about three times this
	// many bytes at most. Longer records are reported as damage. Zero means
	// MaxRecordSize of the package.
	MaxRecordSize int
}

// Reader gives the records of one file, one by one. It reads the file as long as
// it was when the Reader was made. It is not safe for concurrent use.
type Reader struct {
	name   string
	format Format
	max    int
	source *source
	closer io.Closer

	at     int64  // where the next record is expected
	record []byte // memory for one record
	frame  []byte // memory for one compressed frame
	gzip   *gzip.Reader
	zstd   *zstd.Decoder
	work   int64 // bytes that were looked at in vain, less workPerByte for each that was passed
}

// OpenReader opens the file at path, whose name must be one that this package
// gives, finished or partial. The Reader must be closed.
func OpenReader(path string, options ReaderOptions) (*Reader, error) {
	name, ok := ParseName(filepath.Base(path))
	if !ok {
		return nil, fmt.Errorf("segment: open %s: want a name like %s", path,
			Name{Sequence: 1, Format: Format{Content: OTLPProto, Compression: Zstd}})
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("segment: %w", err), file.Close())
	}
	reader, err := NewReader(file, info.Size(), name.Format, options)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	reader.name, reader.closer = path, file
	return reader, nil
}

// NewReader reads records in the given format from the first size bytes of from.
// With Format.Framing zero it also recognises a file that is one bare record.
func NewReader(from io.ReaderAt, size int64, format Format, options ReaderOptions) (*Reader, error) {
	if err := format.validate(); err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	r := &Reader{name: "file", format: format, max: options.MaxRecordSize, source: newSource(from, size)}
	if r.max <= 0 {
		r.max = MaxRecordSize
	}
	return r, nil
}

// Close frees what the Reader holds.
func (r *Reader) Close() error {
	if r.zstd != nil {
		r.zstd.Close()
		r.zstd = nil
	}
	if r.closer == nil {
		return nil
	}
	err := r.closer.Close()
	r.closer = nil
	return err
}

// Offset is where what Next returned last ends, and the next record begins if
// all is well, in bytes from the begin of the file.
func (r *Reader) Offset() int64 { return r.at }

// Next returns the next record, which is valid until the next call.
//
// At the end the error is io.EOF. A *DamageError reports a part of the file that
// was passed over; the next call goes on behind it. Any other error comes from
// reading the file, and is final.
func (r *Reader) Next() ([]byte, error) {
	if r.at >= r.source.size {
		return nil, io.EOF
	}
	record, next, err := r.scan(r.at)
	if err == nil {
		r.at = next
		return record, nil
	}
	var reason damage
	if !errors.As(err, &reason) {
		return nil, fmt.Errorf("segment: %s: %w", r.name, err)
	}
	from := r.at
	if next, err = r.resume(from); err != nil {
		return nil, fmt.Errorf("segment: %s: %w", r.name, err)
	}
	r.at = next
	return nil, &DamageError{
		File: r.name, Offset: from, Length: next - from, Torn: next == r.source.size, Reason: reason,
	}
}

// All gives each record, or error of Next but io.EOF. A record is valid until the
// next one. It stops after an error that is not a *DamageError.
func (r *Reader) All() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			record, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(record, err) {
				return
			}
			var damaged *DamageError
			if err != nil && !errors.As(err, &damaged) {
				return
			}
		}
	}
}
