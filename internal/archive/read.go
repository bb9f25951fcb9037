// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
)

// Records yields the records of a file, and an *Error for each part of it that cannot be read.
func (o *Options) Records(file File) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		opened, err := o.owned(open(file.Path))
		if err != nil {
			yield(nil, &Error{File: file.Path, Err: withoutPath(err)})
			return
		}
		defer opened.close()
		o.readAll(opened, file.Path, yield)
	}
}

// RecordsOf is Records of the first size bytes of a file that is open, and that the caller closes. path is for errors, and its name may
// say the format.
func (o *Options) RecordsOf(file *os.File, size int64, path string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		opened, err := o.opened(file)
		if err != nil {
			yield(nil, &Error{File: path, Offset: -1, Err: withoutPath(err)})
			return
		}
		opened.limit(min(size, opened.size))
		o.readAll(opened, path, yield)
	}
}

// RecordsOfSegment is Records of the first size bytes of a segment that is open, and that the caller closes. path is for errors. A damaged index
// is none of them: it is not needed.
func (o *Options) RecordsOfSegment(file *os.File, size int64, path string, format segment.Format) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		r := &recordReader{options: o, file: &content{ReaderAt: file}, size: size, path: path, yield: yield}
		r.end(r.readRecords(format))
	}
}

// withoutPath removes the path, which Error repeats.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// readAll yields the records of a file, and an error for the rest that cannot be read.
func (o *Options) readAll(from *content, path string, yield func(*Record, error) bool) {
	r := &recordReader{options: o, file: from, size: from.size, path: path, yield: yield}
	r.end(r.read())
}

// recordReader reads one file.
type recordReader struct {
	options *Options
	file    *content
	size    int64 // of file; negative for anything but a regular file, such as a pipe
	path    string
	yield   func(*Record, error) bool
	number  int // of the records read
	ended   bool
}

// isRegular reports whether the file can be read again, and from any place.
func (r *recordReader) isRegular() bool { return r.size >= 0 }

// emit yields the next record.
func (r *recordReader) emit(record Record) {
	r.number++
	record.File, record.Number, record.options = r.path, r.number, r.options
	r.ended = !r.yield(&record, nil)
}

// fail yields an error of the next record.
func (r *recordReader) fail(offset int64, err error) {
	r.number++
	r.ended = !r.yield(nil, &Error{File: r.path, Record: r.number, Offset: offset, Err: withoutPath(err)})
}

// end yields the error of the rest of the file, unless it is nil.
func (r *recordReader) end(err error) {
	if err == nil {
		return
	}
	failed := &Error{File: r.path, Offset: -1, Err: withoutPath(err)}
	if r.number > 0 { // it concerns the next record
		failed.Record = r.number + 1
	}
	r.yield(nil, failed)
}

// read yields the records of the file. An error concerns the rest of it.
func (r *recordReader) read() error {
	err := r.readContent()
	if err == nil || r.number > 0 || !r.isRegular() {
		return err
	}
	switch { // the first record may be damaged
	case r.hasRecord():
		return r.readRecords(segment.Proto)
	case r.hasLine():
		return r.readLines(r.start(), 0)
	default:
		return err
	}
}

// start returns the content from the start of the file.
func (r *recordReader) start() *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(r.file, 0, r.size), headSize)
}

// readContent reads a file whose first bytes tell the format.
func (r *recordReader) readContent() error {
	content, compression, err := decompress(bufio.NewReaderSize(r.file, headSize), r.options.maxRecord())
	if err == nil {
		err = r.readDecompressed(content, compression)
	}
	switch {
	case err == nil || compression == uncompressed:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) && r.isRegular():
		return fmt.Errorf("the file ends after %d bytes, inside its %s data: it is damaged or still being written", r.size, compression)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the input ends inside its %s data", compression)
	default:
		return fmt.Errorf("compressed by %s: %w", compression, err)
	}
}

func (r *recordReader) readDecompressed(content *bufio.Reader, compression compression) error {
	head, err := content.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return err
	}
	plain, size := compression == uncompressed, int64(0)
	if plain {
		size = r.size
	}
	found, encoding, err := detect(head, size)
	switch {
	case err != nil:
		return err
	case encoding.HasParts() && plain && r.isRegular():
		return r.readParts(r.file, r.size, encoding)
	case found == single:
		return r.readSingle(content, encoding)
	case found == prefixed && r.isRegular() && compression == compressedByZstd && r.hasRecord():
		return r.readRecords(segment.Proto)
	case found == lines && plain:
		return r.readLines(content, 0)
	case found == lines:
		return r.readLines(content, -1)
	case plain && r.isRegular():
		return r.readPrefixed(content, 0)
	default:
		return r.readPrefixed(content, -1)
	}
}

// hasRecord reports whether a regular file has a record as the profiles_file exporter writes it, wherever it is.
func (r *recordReader) hasRecord() bool {
	return r.finds(func(search *recordReader) error { return search.readRecords(segment.Proto) }, func(*Record) bool { return true })
}

// hasLine reports whether a regular file has a line of OTLP/JSON.
func (r *recordReader) hasLine() bool {
	return r.finds(func(search *recordReader) error { return search.readLines(r.start(), 0) }, func(record *Record) bool {
		return bytes.HasPrefix(record.Data, []byte(`{"resourceProfiles":`)) || bytes.HasPrefix(record.Data, []byte(`{"dictionary":`))
	})
}

// finds reports whether a way to read the file finds a record. The file is read again, and errors reported.
func (r *recordReader) finds(read func(*recordReader) error, accepts func(*Record) bool) (found bool) {
	search := recordReader{options: r.options, file: r.file, size: r.size, path: r.path}
	search.yield = func(record *Record, err error) bool {
		found = err == nil && accepts(record)
		return !found
	}
	_ = read(&search)
	return found
}

// readRecords reads records that the profiles_file exporter has written, with the reader that finds the next one after a damaged one.
func (r *recordReader) readRecords(format segment.Format) error {
	reader := segment.NewReader(r.file, 0, r.size, format, int(r.options.maxRecord()))
	defer reader.Close()
	for !r.ended {
		data, err := reader.Next()
		damage, damaged := errors.AsType[*segment.DamageError](err)
		switch {
		case err == nil:
			r.emit(Record{Encoding: EncodingOf(format), Offset: reader.Start(), Data: data, stored: true})
		case errors.Is(err, io.EOF):
			return nil
		case !damaged:
			return err
		case errors.Is(err, segment.ErrNoIndex): // which is not needed
		case isPartial(r.path) && reader.Offset() == r.size && errors.Is(damage, io.ErrUnexpectedEOF):
			return nil // the last record is still being written
		default:
			r.fail(damage.Offset, r.options.reasonOf(damage))
		}
	}
	return nil
}

// readSingle reads a file of one record.
func (r *recordReader) readSingle(content io.Reader, encoding Encoding) error {
	data, err := r.readBounded(content, "the file")
	switch {
	case isPartial(r.path) && errors.Is(err, io.ErrUnexpectedEOF), err == nil && len(data) == 0:
		return nil // it is still being written, or empty
	case err != nil:
		return err
	case encoding.HasParts():
		return r.readParts(bytes.NewReader(data), int64(len(data)), encoding)
	case encoding == OTLPJSON && isTooDeep(data):
		return wire.ErrTooDeep
	case encoding == OTLPJSON && !json.Valid(data):
		return errors.New("is not valid JSON")
	case encoding == "":
		if encoding, err = encodingOf(data); err != nil {
			return err
		}
	}
	r.emit(Record{Encoding: encoding, Data: data})
	return nil
}

// readBounded reads all of a record.
func (r *recordReader) readBounded(from io.Reader, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, r.options.maxRecord()+1))
	if err == nil && int64(len(data)) > r.options.maxRecord() {
		err = r.options.tooLarge(what, 0)
	}
	return data, err
}

// readParts reads a file that has parts, which are translated as they are read.
func (r *recordReader) readParts(from io.ReaderAt, size int64, encoding Encoding) error {
	next := r.parts(from, size, encoding)
	for !r.ended {
		pd, held, offset, err := next(r.options.maxDecoded())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if _, isLimit := errors.AsType[*wire.LimitError](err); isLimit {
			err = fmt.Errorf("%w: %s", err, r.options.raise())
		}
		if err != nil {
			r.fail(offset, err)
			continue
		}
		r.emit(Record{Encoding: encoding, Offset: offset, translated: pd, size: int64(held)})
	}
	return nil
}

// parts returns what translates the next part of a file, with the bytes of memory that it holds. Only those of recordings have an offset.
func (r *recordReader) parts(from io.ReaderAt, size int64, encoding Encoding) func(memory int64) (pd pprofile.Profiles, held int, offset int64, err error) {
	switch encoding {
	case JFR:
		u := jfrtranslator.Unmarshaler{ChunkSize: int(r.options.maxRecord()), Timestamps: true, NormalizeClassNames: true}
		chunks := u.NewReader(from, size)
		return func(memory int64) (pprofile.Profiles, int, int64, error) {
			pd, report, err := chunks.Next(memory, nil)
			_, offset := chunks.Chunk()
			return pd, report.Bytes, offset, err
		}
	case GoTrace:
		u := gotracetranslator.Unmarshaler{End: r.file.modified}
		slices := u.NewReader(from, size)
		return func(memory int64) (pprofile.Profiles, int, int64, error) {
			pd, report, err := slices.Next(memory, nil)
			return pd, report.Bytes, -1, err
		}
	default:
		var u perfscripttranslator.Unmarshaler
		if modified := r.file.modified; !modified.IsZero() {
			u.End = uint64(max(modified.UnixNano(), 0))
		}
		parts := u.NewReader(from, size)
		return func(memory int64) (pprofile.Profiles, int, int64, error) {
			pd, report, err := parts.Next(memory, nil)
			return pd, report.Bytes, -1, err
		}
	}
}

// readLines reads one record a line, and continues after a damaged one. offset is that of the first line in the
// file, -1 if it is not known. The last line may lack its line feed.
func (r *recordReader) readLines(content *bufio.Reader, offset int64) error {
	for !r.ended {
		var line []byte
		err := bufio.ErrBufferFull
		for errors.Is(err, bufio.ErrBufferFull) {
			var part []byte
			part, err = content.ReadSlice('\n')
			if line = append(line, part...); int64(len(line)) > r.options.maxRecord() {
				return r.options.tooLarge("a line", 0)
			}
		}
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		switch record := bytes.TrimSpace(line); {
		case json.Valid(record):
			r.emit(Record{Encoding: OTLPJSON, Offset: offset, Data: record})
		case len(record) == 0:
		case isTooDeep(record):
			r.fail(offset, wire.ErrTooDeep)
		case !last:
			r.fail(offset, errors.New("the line is not valid JSON"))
		case !isPartial(r.path):
			r.fail(offset, errIncomplete)
		}
		if last {
			return nil
		}
		if offset >= 0 {
			offset += int64(len(line))
		}
	}
	return nil
}

var errIncomplete = errors.New("the file ends inside a record: it is damaged or still being written")

// isTooDeep reports whether arrays and objects of JSON nest deeper than encoding/json reads. Attribute values may nest
// much less deep.
func isTooDeep(record []byte) bool {
	const maxDepth = 10_000
	depth := 0
	for _, b := range record {
		switch b {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if depth > maxDepth {
			return true
		}
	}
	return false
}

// readPrefixed reads records that are preceded by their length. offset is that of the first one in the file, -1 if it is not known, as in a
// pipe or in a file that is compressed as a whole. In a file, a record that is too large is skipped.
func (r *recordReader) readPrefixed(content *bufio.Reader, offset int64) error {
	var buffer bytes.Buffer
	for !r.ended {
		var prefix [prefixSize]byte
		_, err := io.ReadFull(content, prefix[:])
		if err == io.EOF { //nolint:errorlint // ReadFull returns it as it is, between records
			return nil
		}
		at, length := offset, int64(binary.BigEndian.Uint32(prefix[:]))
		if offset >= 0 {
			offset += prefixSize + length
		}
		if err == nil && length > r.options.maxRecord() && offset >= 0 && offset <= r.size {
			r.fail(at, r.options.tooLarge("the record", length))
			if _, err := io.CopyN(io.Discard, content, length); err != nil {
				return err
			}
			continue
		}
		if err == nil && (length == 0 || length > r.options.maxRecord()) {
			return fmt.Errorf("length of a record is %d: must be between 1 and %d; if it is right, %s", length, r.options.maxRecord(), r.options.raise())
		}
		buffer.Reset()
		if err == nil && offset >= 0 && offset <= r.size { // otherwise the length may be wrong
			buffer.Grow(int(length) + bytes.MinRead)
		}
		if err == nil {
			_, err = io.CopyN(&buffer, content, length)
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			if isPartial(r.path) {
				return nil
			}
			return errIncomplete
		case err != nil:
			return err
		}
		data, err := r.decompressContrib(buffer.Bytes())
		encoding := OTLPProto
		if bytes.HasPrefix(data, []byte("{")) {
			encoding = OTLPJSON
		}
		if err != nil {
			r.fail(at, err)
		} else {
			r.emit(Record{Encoding: encoding, Offset: at, Data: data})
		}
	}
	return nil
}

// decompressContrib returns a record, which contrib's file exporter may have compressed.
func (r *recordReader) decompressContrib(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, zstdMagic) {
		return data, nil
	}
	decoder, err := newZstdDecoder(bytes.NewReader(data), r.options.maxRecord())
	if err != nil {
		return nil, err
	}
	return r.readBounded(decoder, "the record")
}
