// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// Records yields the records of a part of a file, and an *Error for each part of it that cannot be read. A *StorageError is the
// last: the file may be well, but its store is not.
func (o *Options) Records(ctx context.Context, file File, part Part) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		opened, err := o.open(ctx, file, part)
		if err != nil {
			yield(nil, &Error{File: file.Path, Err: withoutPath(err)})
			return
		}
		defer opened.close()
		o.readAll(opened, file.Path, part, yield)
	}
}

// RecordsOf is Records of all of a file that is open, and that the caller closes. path is for errors, and its name may say the
// format.
func (o *Options) RecordsOf(file *os.File, path string) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		opened, err := o.opened(file)
		if err != nil {
			yield(nil, &Error{File: path, Offset: -1, Err: withoutPath(err)})
			return
		}
		o.readAll(opened, path, Part{}, yield)
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
func (o *Options) readAll(from *content, path string, part Part, yield func(*Record, error) bool) {
	r := &recordReader{options: o, file: from, size: from.size, path: path, part: part, number: part.Before, yield: yield}
	err := r.read()
	if err == nil {
		return
	}
	if IsStorageError(err) {
		yield(nil, err)
		return
	}
	failed := &Error{File: path, Offset: -1, Err: withoutPath(err)}
	if r.number > 0 { // it concerns the next record
		failed.Record = r.number + 1
	}
	yield(nil, failed)
}

// recordReader reads one file.
type recordReader struct {
	options *Options
	file    *content
	size    int64 // of file; negative for anything but a regular file, such as a pipe
	path    string
	part    Part
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

// read yields the records of the file. An error concerns the rest of it.
func (r *recordReader) read() error {
	if name, ours := recordfile.ParseName(filepath.Base(r.path)); ours && r.isRegular() {
		return r.readFormat(name.Format)
	}
	err := r.readContent()
	if err == nil || r.number > r.part.Before || !r.isRegular() {
		return err
	}
	// The first record may be damaged. These are the formats of the exporter in which the next one can be found.
	for _, format := range []recordfile.Format{
		{Content: recordfile.OTLPProto, Compression: recordfile.Zstd}, {Content: recordfile.OTLPProto, Compression: recordfile.Gzip},
		{Content: recordfile.OTLPJSON, Compression: recordfile.Zstd}, {Content: recordfile.OTLPJSON, Compression: recordfile.Gzip},
		{Content: recordfile.OTLPJSON},
	} {
		if r.hasRecord(format) {
			return r.readFormat(format)
		}
	}
	return err
}

// readContent reads a file whose first bytes tell the format.
func (r *recordReader) readContent() error {
	content, compression, err := decompress(bufio.NewReaderSize(r.file, headSize), r.options.maxRecord())
	if err == nil {
		err = r.readDecompressed(content, compression)
	}
	if err != nil && compression != recordfile.None {
		err = fmt.Errorf("compressed file: %w", err)
	}
	return err
}

func (r *recordReader) readDecompressed(content *bufio.Reader, compression recordfile.Compression) error {
	head, err := content.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return err
	}
	plain, size := compression == recordfile.None, int64(0)
	if plain {
		size = r.size
	}
	found, encoding, err := detect(head, size)
	format := recordfile.Format{Content: recordfile.OTLPProto, Compression: compression}
	if found == lines {
		format.Content = recordfile.OTLPJSON
	}
	compressedByContrib := plain && bytes.HasPrefix(head[min(len(head), prefixSize):], zstdMagic) // after the length
	switch {
	case err != nil:
		return err
	case encoding == JFR && plain && r.isRegular():
		return r.readChunks(r.file, r.size)
	case found == single:
		return r.readSingle(content, encoding)
	case r.isRegular() && !compressedByContrib && (plain || r.hasRecord(format)):
		return r.readFormat(format)
	case found == lines && plain: // a pipe
		return r.readLines(content, 0)
	case found == lines:
		return r.readLines(content, -1)
	default:
		return r.readPrefixed(content)
	}
}

// hasRecord reports whether a regular file has a record as the exporter writes it in this format, wherever it is.
func (r *recordReader) hasRecord(format recordfile.Format) (found bool) {
	search := recordReader{options: r.options, file: r.file, size: r.size, path: r.path}
	search.yield = func(record *Record, err error) bool {
		found = err == nil && (format.Content == recordfile.OTLPProto ||
			bytes.HasPrefix(record.Data, []byte(`{"resourceProfiles":`)) || bytes.HasPrefix(record.Data, []byte(`{"dictionary":`)))
		return !found
	}
	_ = search.readRecords(format) // the file is read again, and the error reported
	return found
}

// section returns the part of the file to read.
func (r *recordReader) section() *io.SectionReader {
	return io.NewSectionReader(r.file, r.part.Start, max(0, min(r.size, cmp.Or(r.part.End, r.size))-r.part.Start))
}

// readFormat reads a file of the exporter.
func (r *recordReader) readFormat(format recordfile.Format) error {
	if format == (recordfile.Format{Content: recordfile.OTLPJSON}) {
		return r.readLines(bufio.NewReaderSize(r.section(), headSize), r.part.Start)
	}
	return r.readRecords(format)
}

// readRecords reads records with the reader of the exporter's files, which finds the next record after a
// damaged one.
func (r *recordReader) readRecords(format recordfile.Format) error {
	section := r.section()
	reader := recordfile.NewReader(section, section.Size(), format, int(r.options.maxRecord()))
	defer reader.Close()
	encoding := OTLPProto
	if format.Content == recordfile.OTLPJSON {
		encoding = OTLPJSON
	}
	for !r.ended {
		offset := r.part.Start + reader.Offset()
		data, err := reader.Next()
		damage, damaged := errors.AsType[*recordfile.DamageError](err)
		tooLarge, isTooLarge := errors.AsType[*recordfile.SizeError](err)
		switch {
		case err == nil:
			r.emit(Record{Encoding: encoding, Offset: offset, End: r.part.Start + reader.Offset(), Data: data})
		case errors.Is(err, io.EOF):
			return nil
		case !damaged:
			return err
		case isPartial(r.path) && reader.Offset() == section.Size() && errors.Is(damage, io.ErrUnexpectedEOF):
			return nil // the last record is still being written
		case isTooLarge:
			r.fail(offset, r.options.tooLarge("the record", tooLarge.Size))
		default:
			r.fail(offset, fmt.Errorf("%w; skipped %d bytes", damage.Reason, damage.Length))
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
	case encoding == JFR:
		return r.readChunks(bytes.NewReader(data), int64(len(data)))
	case encoding == OTLPJSON && isTooDeep(data):
		return wire.ErrTooDeep
	case encoding == OTLPJSON && !json.Valid(data):
		return errors.New("is not valid JSON")
	case encoding == "":
		if encoding, err = encodingOf(data); err != nil {
			return err
		}
	}
	r.emit(Record{Encoding: encoding, End: -1, Data: data})
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

// readChunks reads a recording of a JVM. Each chunk is a record.
func (r *recordReader) readChunks(from io.ReaderAt, size int64) error {
	u := jfrtranslator.Unmarshaler{ChunkSize: int(r.options.maxRecord()), NormalizeClassNames: true}
	chunks := u.NewReader(from, size)
	for !r.ended {
		pd, report, err := chunks.Next(r.options.maxDecoded(), nil)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if tooLarge, ok := errors.AsType[*jfrtranslator.LimitError](err); ok {
			err = fmt.Errorf("%w: %s", tooLarge, r.options.raise())
		}
		_, offset := chunks.Chunk()
		if err != nil {
			r.fail(offset, err)
			continue
		}
		r.emit(Record{Encoding: JFR, Offset: offset, End: -1, chunk: pd, size: int64(report.Bytes)})
	}
	return nil
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
			r.emit(Record{Encoding: OTLPJSON, Offset: offset, End: -1, Data: record})
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

// readPrefixed reads records that are preceded by their length, in a pipe or in a file that is compressed as a
// whole.
func (r *recordReader) readPrefixed(content io.Reader) error {
	var buffer bytes.Buffer
	for !r.ended {
		var prefix [prefixSize]byte
		_, err := io.ReadFull(content, prefix[:])
		if err == io.EOF { //nolint:errorlint // ReadFull returns it as it is, between records
			return nil
		}
		length := int64(binary.BigEndian.Uint32(prefix[:]))
		if err == nil && (length == 0 || length > r.options.maxRecord()) {
			return fmt.Errorf("length of a record is %d: must be between 1 and %d; if it is right, %s", length, r.options.maxRecord(), r.options.raise())
		}
		buffer.Reset()
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
		if data, err := r.decompressContrib(buffer.Bytes()); err != nil {
			r.fail(-1, err)
		} else if bytes.HasPrefix(data, []byte("{")) {
			r.emit(Record{Encoding: OTLPJSON, Offset: -1, End: -1, Data: data})
		} else {
			r.emit(Record{Encoding: OTLPProto, Offset: -1, End: -1, Data: data})
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
