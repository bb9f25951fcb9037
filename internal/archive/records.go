// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// Options say how to read files.
type Options struct {
	// MaxMemory bounds the memory in bytes that reading takes: a record may have an eighth of it
	// and take a quarter when it is decoded.
	MaxMemory int64
	// MaxRecord is the size in bytes that a record may have, if that is not an eighth of MaxMemory.
	MaxRecord int64
	// Setting is the name of the setting that limits the memory, for errors.
	Setting string
	// Progress is called with the number of bytes of files that were read; nil is none.
	Progress func(n int)
}

func (o *Options) maxRecord() int64 {
	return min(cmp.Or(o.MaxRecord, o.MaxMemory/8), segment.MaxRecordSize)
}

// raise is the advice for a record that is too large.
func (o *Options) raise() string { return "raise " + cmp.Or(o.Setting, "the memory limit") }

// tooLarge is the error of a record of more than maxRecord bytes; size is 0 if it is not known.
func (o *Options) tooLarge(what string, size int64) error {
	limit := mebibytes(o.maxRecord())
	if size == 0 {
		return fmt.Errorf("%s has more than %s: %s", what, limit, o.raise())
	}
	return fmt.Errorf("%s has %s, more than %s: %s", what, mebibytes(size), limit, o.raise())
}

func (o *Options) maxDecoded() int64 { return o.MaxMemory / 4 }

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
		o.readAll(from, size, &recordReader{options: o, path: file.Path, part: part, number: part.Before, yield: yield})
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
		o.readAll(o.counted(file), info.Size(), &recordReader{options: o, path: path, yield: yield})
	}
}

func (o *Options) readAll(from *countedFile, size int64, r *recordReader) {
	if err := r.read(from, size); err != nil {
		r.fail(err)
	}
}

func (o *Options) counted(f *os.File) *countedFile {
	return &countedFile{File: f, progress: o.Progress}
}

// open opens a file. An incomplete file may have been closed, and so renamed, after it was
// found. size is negative for anything but a regular file, such as a pipe.
func (o *Options) open(path string) (*countedFile, int64, error) {
	if path == Stdin {
		return o.counted(os.Stdin), -1, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && isPartial(path) {
		f, err = os.Open(closedPath(path))
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if !info.Mode().IsRegular() {
		return o.counted(f), -1, nil
	}
	return o.counted(f), info.Size(), nil
}

// withoutPath removes the path, which Error repeats.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// countedFile reports how much of a file was read.
type countedFile struct {
	*os.File
	progress func(n int)
}

func (f *countedFile) count(n int) {
	if f.progress != nil && n > 0 {
		f.progress(n)
	}
}

func (f *countedFile) Read(p []byte) (int, error) {
	n, err := f.File.Read(p)
	f.count(n)
	return n, err
}

func (f *countedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	f.count(n)
	return n, err
}

// recordReader reads one file.
type recordReader struct {
	options *Options
	path    string
	yield   func(*Record, error) bool
	part    Part
	number  int // of the records read
	ended   bool
	// streaming: errors of the file concern its next record.
	streaming bool
	line      int64                        // where the next line starts, or -1
	starts    map[segment.Compression]bool // of startsIn; nil before the first call
}

// emit yields a record.
func (r *recordReader) emit(encoding Encoding, offset, end int64, data []byte) {
	r.number++
	r.ended = !r.yield(&Record{
		File: r.path, Number: r.number, Offset: offset, End: end, Encoding: encoding, Data: data, options: r.options,
	}, nil)
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

// read yields the records of a file. An error concerns the rest of it.
func (r *recordReader) read(from *countedFile, size int64) error {
	if name, ours := segment.ParseName(filepath.Base(r.path)); ours && size >= 0 {
		return r.readFormat(from, size, name.Format)
	}
	err := r.readContent(from, size)
	if err == nil || r.number > r.part.Before {
		return err
	}
	for _, format := range separable {
		if size >= 0 && r.startsIn(from, size)[format.Compression] && r.hasRecord(from, size, format) {
			return r.readFormat(from, size, format)
		}
	}
	return err
}

// readContent reads a file whose first bytes tell the format.
func (r *recordReader) readContent(from *countedFile, size int64) error {
	content, compression, err := decompress(bufio.NewReaderSize(from, headSize), r.options.maxRecord())
	if err != nil {
		return err
	}
	head, err := content.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return err
	}
	plain, contentSize := compression == segment.None, size
	if !plain {
		contentSize, r.line = 0, -1
	}
	found, err := layoutOf(head, contentSize)
	format := segment.Format{Content: segment.OTLPJSON, Compression: compression}
	if found == prefixed {
		format.Content = segment.OTLPProto
	}
	switch {
	case err != nil:
		return err
	case found == single && jfrtranslator.IsRecording(head) && plain && size >= 0:
		return r.readChunks(from, size)
	case found == single:
		if plain && isTextPart(head) && r.hasRecord(from, size, format) { // after a damaged line
			return r.readFormat(from, size, format)
		}
		return r.readSingle(content)
	case size < 0, !plain && !r.hasRecord(from, size, format), plain && bytes.HasPrefix(head[min(len(head), prefixSize):], zstdMagic):
		// A pipe, a file that is compressed as a whole, or contrib's, which compresses what follows the length.
		return r.readStream(content, found)
	}
	return r.readFormat(from, size, format)
}

// separable are the formats of the exporter in which the next record can be found after a damaged one.
var separable = []segment.Format{
	{Content: segment.OTLPProto, Compression: segment.Zstd},
	{Content: segment.OTLPProto, Compression: segment.Gzip},
	{Content: segment.OTLPJSON, Compression: segment.Zstd},
	{Content: segment.OTLPJSON, Compression: segment.Gzip},
	{Content: segment.OTLPJSON},
}

// hasRecord reports whether a file has a record as the exporter writes it in this format. It does not look into a
// pipe, which could not be read again.
func (r *recordReader) hasRecord(from *countedFile, size int64, format segment.Format) (found bool) {
	if size < 0 {
		return false
	}
	if format == (segment.Format{Content: segment.OTLPJSON}) {
		return r.startsIn(from, size)[segment.None]
	}
	search := recordReader{options: r.options, path: r.path, yield: func(_ *Record, err error) bool {
		found = err == nil
		return !found
	}}
	_ = search.readSegment(from.File, size, format) // the file is read again, and the error reported
	return found
}

const lineStart, otherLineStart = "\n{\"resourceProfiles\":", "\n{\"dictionary\":"

// startsOf are the bytes with which the exporter starts a record: one that is compressed, or a line after
// the first.
var startsOf = map[segment.Compression][]string{
	segment.None: {lineStart, otherLineStart},
	segment.Gzip: {string(gzipMagic) + "\x08\x00"}, // deflate, without a name
	segment.Zstd: {string(zstdMagic)},
}

// startsIn returns the compressions of which the file has the start of a record somewhere. It reads the file once.
func (r *recordReader) startsIn(from *countedFile, size int64) map[segment.Compression]bool {
	if r.starts != nil {
		return r.starts
	}
	found, content := map[segment.Compression]bool{}, bufio.NewReaderSize(r.part.of(from.File, size), 64<<10)
	for {
		buffered, err := content.Peek(content.Size())
		for compression, starts := range startsOf {
			for _, start := range starts {
				found[compression] = found[compression] || bytes.Contains(buffered, []byte(start))
			}
		}
		if err != nil {
			r.starts = found
			return found
		}
		_, _ = content.Discard(len(buffered) - len(lineStart) + 1) // never fails: the bytes are there
	}
}

// readFormat reads a file of the exporter.
func (r *recordReader) readFormat(from io.ReaderAt, size int64, format segment.Format) error {
	if format == (segment.Format{Content: segment.OTLPJSON}) {
		r.line = r.part.Start
		return r.readStream(bufio.NewReaderSize(r.part.of(from, size), headSize), lines)
	}
	return r.readSegment(from, size, format)
}

// readSegment reads records with the reader of the exporter's files, which finds the next record after a
// damaged one.
func (r *recordReader) readSegment(from io.ReaderAt, size int64, format segment.Format) error {
	start, section := r.part.Start, r.part.of(from, size)
	size = section.Size()
	reader, err := segment.NewReader(section, size, format, int(r.options.maxRecord()))
	if err != nil {
		return err
	}
	defer reader.Close()
	encoding := map[segment.Content]Encoding{segment.OTLPProto: OTLPProto, segment.OTLPJSON: OTLPJSON, segment.Pprof: Pprof}[format.Content]
	for !r.ended {
		offset := start + reader.Offset()
		data, err := reader.Next()
		damage, damaged := errors.AsType[*segment.DamageError](err)
		switch {
		case err == nil:
			r.emit(encoding, offset, start+reader.Offset(), data)
		case errors.Is(err, io.EOF):
			return nil
		case !damaged:
			return err
		case isPartial(r.path) && reader.Offset() == size && errors.Is(damage, io.ErrUnexpectedEOF):
			return nil // the last record is still being written
		case tooLarge(damage) != nil:
			r.failAt(offset, r.options.tooLarge("the record", tooLarge(damage).Size))
		default:
			r.failAt(offset, fmt.Errorf("%w; skipped %d bytes", damage.Reason, damage.Length))
		}
	}
	return nil
}

// readSingle reads a file of one record.
func (r *recordReader) readSingle(content *bufio.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, r.options.maxRecord()+1))
	switch {
	case isPartial(r.path) && errors.Is(err, io.ErrUnexpectedEOF):
		return nil // it is still being written
	case err != nil:
		return err
	case len(data) == 0:
		return nil
	case int64(len(data)) > r.options.maxRecord():
		return r.options.tooLarge("the file", 0)
	}
	encoding, err := encodingOf(data)
	if err != nil {
		return err
	}
	if encoding == JFR {
		return r.readChunks(bytes.NewReader(data), int64(len(data)))
	}
	r.emit(encoding, 0, -1, data)
	return nil
}

// readChunks reads a recording of a JVM. Each chunk is a record.
func (r *recordReader) readChunks(from io.ReaderAt, size int64) error {
	u := jfrtranslator.Unmarshaler{ChunkSize: int(r.options.maxRecord())}
	chunks := u.NewReader(from, size)
	for !r.ended {
		pd, report, err := chunks.Next(r.options.reserve)
		if errors.Is(err, io.EOF) {
			return nil
		}
		_, offset := chunks.Chunk()
		if err != nil {
			r.failAt(offset, err)
			continue
		}
		r.number++
		r.ended = !r.yield(&Record{
			File: r.path, Number: r.number, Offset: offset, End: -1, Encoding: JFR, options: r.options, chunk: pd, size: int64(report.Bytes),
		}, nil)
	}
	return nil
}

func tooLarge(damage error) *segment.SizeError {
	size, _ := errors.AsType[*segment.SizeError](damage)
	return size
}

// readStream reads lines, or records that follow each other in a pipe or in a file that is compressed as a
// whole. It continues after a damaged line only.
func (r *recordReader) readStream(content *bufio.Reader, found layout) error {
	var buffer bytes.Buffer
	r.streaming = true
	for !r.ended {
		if _, err := content.Peek(1); errors.Is(err, io.EOF) {
			return nil
		}
		if found == lines {
			if err := r.readLine(content); err != nil {
				return err
			}
			continue
		}
		var prefix [prefixSize]byte
		if _, err := io.ReadFull(content, prefix[:]); err != nil {
			return r.incomplete(err)
		}
		length := int64(binary.BigEndian.Uint32(prefix[:]))
		if length == 0 || length > r.options.maxRecord() {
			return fmt.Errorf("length of a record is %d: must be between 1 and %d; if it is right, %s", length, r.options.maxRecord(), r.options.raise())
		}
		buffer.Reset()
		if _, err := io.CopyN(&buffer, content, length); err != nil {
			return r.incomplete(err)
		}
		if err := r.emitContrib(buffer.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// incomplete returns the error for a record that ends early: none if the file is still being written.
func (r *recordReader) incomplete(err error) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case isPartial(r.path):
		return nil
	}
	return errors.New("the file ends inside a record: it is damaged or still being written")
}

// emitContrib yields a record, which contrib's file exporter may have compressed.
func (r *recordReader) emitContrib(data []byte) error {
	if bytes.HasPrefix(data, zstdMagic) {
		decoder, err := newZstdDecoder(bytes.NewReader(data), r.options.maxRecord())
		if err != nil {
			return err
		}
		data, err = io.ReadAll(io.LimitReader(decoder, r.options.maxRecord()+1))
		switch {
		case err != nil:
			r.fail(fmt.Errorf("zstd: %w", err))
			return nil
		case int64(len(data)) > r.options.maxRecord():
			r.fail(r.options.tooLarge("the record", 0))
			return nil
		}
	}
	encoding := OTLPProto
	if bytes.HasPrefix(data, []byte("{")) {
		encoding = OTLPJSON
	}
	r.emit(encoding, -1, -1, data)
	return nil
}

// readLine reads a line. The last one may lack its line feed.
func (r *recordReader) readLine(content *bufio.Reader) error {
	var line []byte
	offset := r.line
	for {
		part, err := content.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case int64(len(line)) > r.options.maxRecord():
			return r.options.tooLarge("a line", 0)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if offset >= 0 {
			r.line += int64(len(line))
		}
		switch record := bytes.TrimSpace(line); {
		case json.Valid(record):
			r.emit(OTLPJSON, offset, -1, record)
		case len(record) == 0:
		case errors.Is(err, io.EOF):
			if err := r.incomplete(err); err != nil {
				r.failAt(offset, err)
			}
		default:
			r.failAt(offset, errors.New("the line is not valid JSON"))
		}
		return nil
	}
}
