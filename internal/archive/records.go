// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"cmp"
	"io"
	"iter"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// Record is one payload of a file.
type Record struct {
	File     string
	Number   int   // from 1
	Offset   int64 // where it starts in the file, or -1
	End      int64 // where it ends, or -1
	Encoding Encoding
	// Data is valid until the next record is read. A chunk of a recording has none.
	Data []byte

	options *Options
	chunk   pprofile.Profiles // of a recording
	size    int64             // of chunk in memory, in bytes
}

// Fail returns err as an *Error of the record.
func (r *Record) Fail(err error) error {
	return &Error{File: r.File, Record: r.Number, Offset: r.Offset, Err: err}
}

// Part is some records of a file of the profiles_file exporter, one after the other.
type Part struct {
	Start, End int64 // of their bytes in the file; the End 0 stands for that of the file
	Before     int   // the number of records before them
}

// of returns the part of a file of size bytes.
func (p Part) of(file io.ReaderAt, size int64) *io.SectionReader {
	return io.NewSectionReader(file, p.Start, max(0, min(size, cmp.Or(p.End, size))-p.Start))
}

// Records yields the records of a file, and an *Error for each part of it that cannot be read.
func (o *Options) Records(file File) iter.Seq2[*Record, error] { return o.RecordsIn(file, Part{}) }

// RecordsIn is Records of a part of a file.
func (o *Options) RecordsIn(file File, part Part) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		from, size, err := o.open(file.Path)
		if err != nil {
			yield(nil, &Error{File: file.Path, Err: withoutPath(err)})
			return
		}
		defer func() { _ = from.Close() }()
		(&recordReader{options: o, file: from, size: size, path: file.Path, part: part, number: part.Before, yield: yield}).readAll()
	}
}

// RecordsOf is Records of a regular file that is open, and that the caller closes. path is for
// errors, and its name may say the format.
func (o *Options) RecordsOf(file *os.File, path string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		info, err := file.Stat()
		if err != nil {
			yield(nil, &Error{File: path, Err: withoutPath(err)})
			return
		}
		(&recordReader{options: o, file: o.counted(file), size: info.Size(), path: path, yield: yield}).readAll()
	}
}

// recordReader reads one file.
type recordReader struct {
	options *Options
	file    *countedFile
	size    int64 // of file; negative for anything but a regular file, such as a pipe
	path    string
	yield   func(*Record, error) bool
	part    Part
	number  int // of the records read
	ended   bool
	// streaming: errors of the file concern its next record.
	streaming   bool
	line        int64                           // where the next line starts, or -1
	foundStarts map[recordfile.Compression]bool // by starts; nil before its first call
}

// isRegular reports whether the file can be read again, and from any place.
func (r *recordReader) isRegular() bool { return r.size >= 0 }

// readAll yields the records of the file, and an error for the rest that cannot be read.
func (r *recordReader) readAll() {
	if err := r.read(); err != nil {
		r.fail(err)
	}
}

// emit yields the next record.
func (r *recordReader) emit(record Record) {
	r.number++
	record.File, record.Number, record.options = r.path, r.number, r.options
	r.ended = !r.yield(&record, nil)
}

// fail yields an error of the next record, or of the file if it has none yet.
func (r *recordReader) fail(err error) { r.failAt(-1, err) }

func (r *recordReader) failAt(offset int64, err error) {
	failed := &Error{File: r.path, Offset: offset, Err: withoutPath(err)}
	if r.number++; r.number > 1 || offset >= 0 || r.streaming {
		failed.Record = r.number
	}
	r.ended = !r.yield(nil, failed)
}
