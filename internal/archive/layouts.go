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

	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// readFormat reads a file of the exporter.
func (r *recordReader) readFormat(format recordfile.Format) error {
	if format == (recordfile.Format{Content: recordfile.OTLPJSON}) {
		r.line = r.part.Start
		return r.readLines(bufio.NewReaderSize(r.part.of(r.file, r.size), headSize))
	}
	return r.readSegment(r.file, format)
}

// readSegment reads records with the reader of the exporter's files, which finds the next record after a
// damaged one. from is the file.
func (r *recordReader) readSegment(from io.ReaderAt, format recordfile.Format) error {
	start, section := r.part.Start, r.part.of(from, r.size)
	size := section.Size()
	reader, err := recordfile.NewReader(section, size, format, int(r.options.maxRecord()))
	if err != nil {
		return err
	}
	defer reader.Close()
	encoding := map[recordfile.Content]Encoding{recordfile.OTLPProto: OTLPProto, recordfile.OTLPJSON: OTLPJSON, recordfile.Pprof: Pprof}[format.Content]
	for !r.ended {
		offset := start + reader.Offset()
		data, err := reader.Next()
		damage, damaged := errors.AsType[*recordfile.DamageError](err)
		tooLarge, isTooLarge := errors.AsType[*recordfile.SizeError](err)
		switch {
		case err == nil:
			r.emit(Record{Encoding: encoding, Offset: offset, End: start + reader.Offset(), Data: data})
		case errors.Is(err, io.EOF):
			return nil
		case !damaged:
			return err
		case isPartial(r.path) && reader.Offset() == size && errors.Is(damage, io.ErrUnexpectedEOF):
			return nil // the last record is still being written
		case isTooLarge:
			r.failAt(offset, r.options.tooLarge("the record", tooLarge.Size))
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
	r.emit(Record{Encoding: encoding, End: -1, Data: data})
	return nil
}

// readChunks reads a recording of a JVM. Each chunk is a record.
func (r *recordReader) readChunks(from io.ReaderAt, size int64) error {
	u := jfrtranslator.Unmarshaler{ChunkSize: int(r.options.maxRecord())}
	chunks := u.NewReader(from, size)
	for !r.ended {
		pd, report, err := chunks.Next(r.options.maxDecoded())
		if errors.Is(err, io.EOF) {
			return nil
		}
		_, offset := chunks.Chunk()
		if tooLarge, ok := errors.AsType[*jfrtranslator.LimitError](err); ok {
			err = fmt.Errorf("%w: %s", tooLarge, r.options.raise())
		}
		if err != nil {
			r.failAt(offset, err)
			continue
		}
		r.emit(Record{Encoding: JFR, Offset: offset, End: -1, chunk: pd, size: int64(report.Bytes)})
	}
	return nil
}

// readLines reads one record a line, and continues after a damaged one.
func (r *recordReader) readLines(content *bufio.Reader) error {
	r.streaming = true
	for !r.ended && !atEnd(content) {
		if err := r.readLine(content); err != nil {
			return err
		}
	}
	return nil
}

func atEnd(content *bufio.Reader) bool {
	_, err := content.Peek(1)
	return errors.Is(err, io.EOF)
}

// readPrefixed reads records that are preceded by their length, in a pipe or in a file that is compressed as a
// whole.
func (r *recordReader) readPrefixed(content *bufio.Reader) error {
	var buffer bytes.Buffer
	r.streaming = true
	for !r.ended && !atEnd(content) {
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
	r.emit(Record{Encoding: encoding, Offset: -1, End: -1, Data: data})
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
			r.emit(Record{Encoding: OTLPJSON, Offset: offset, End: -1, Data: record})
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
