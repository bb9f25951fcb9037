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
	"unicode"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Encoding is that of a record.
type Encoding string

const (
	OTLPProto Encoding = "otlp"
	OTLPJSON  Encoding = "json"
	Pprof     Encoding = "pprof"
	Folded    Encoding = "folded"
	JFR       Encoding = "jfr"
	GoTrace   Encoding = "go trace" // an execution trace
	Script    Encoding = "perf script"
	// legacyPprof is a format of pprof from before protobuf.
	legacyPprof Encoding = "legacy pprof"
)

// EncodingOf returns that of the records of segments in a format.
func EncodingOf(format segment.Format) Encoding {
	if format == segment.JSON {
		return OTLPJSON
	}
	return OTLPProto
}

// HasParts reports whether a file is read part by part, each of which is a record: a chunk of a recording of a JVM, a slice of an execution
// trace of Go, or a part of the output of perf script.
func (e Encoding) HasParts() bool { return e == JFR || e == GoTrace || e == Script }

// layout is how the records of a file follow each other.
type layout int

const (
	single   layout = iota // one record
	prefixed               // each record is preceded by its length: 4 bytes, big-endian
	lines                  // one record a line
)

// compression is that of a file as a whole.
type compression int

const (
	uncompressed compression = iota
	compressedByGzip
	compressedByZstd
)

func (c compression) String() string { return [...]string{"plain", "gzip", "zstd"}[c] }

// prefixSize is the number of bytes of a length.
const prefixSize = 4

// headSize is how many bytes layoutOf may look at.
const headSize = 4096

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// decompress returns the content of from, which is one file, and how it is compressed. Members
// and frames that follow each other are one content.
func decompress(from *bufio.Reader, maxRecord int64) (*bufio.Reader, compression, error) {
	head, err := from.Peek(len(zstdMagic))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, uncompressed, err
	case bytes.HasPrefix(head, gzipMagic):
		decoder, err := gzip.NewReader(from)
		return bufio.NewReaderSize(decoder, headSize), compressedByGzip, err
	case bytes.Equal(head, zstdMagic):
		decoder, err := newZstdDecoder(from, maxRecord)
		return bufio.NewReaderSize(decoder, headSize), compressedByZstd, err
	}
	return from, uncompressed, nil
}

// newZstdDecoder returns a decoder that starts no goroutine, and so needs no Close.
func newZstdDecoder(from io.Reader, maxRecord int64) (*zstd.Decoder, error) {
	const minWindow = 8 << 20 // as the format recommends that decoders support
	return zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(uint64(max(minWindow, min(maxRecord, 512<<20)))), zstd.WithDecoderMaxMemory(uint64(max(minWindow, maxRecord))))
}

// detect recognizes the layout of a file and the encoding of its records by the first bytes of the content, and rejects
// anything that is not a profile. size is that of the content, or 0 if it is not known. The encoding of a single message
// and of text is found in all of it: see encodingOf.
func detect(head []byte, size int64) (layout, Encoding, error) {
	switch first := bytes.TrimLeft(head, " \t\r\n"); {
	case jfrtranslator.IsRecording(head):
		return single, JFR, nil
	case gotracetranslator.IsTrace(head):
		return single, GoTrace, nil
	case perfscripttranslator.IsScript(head):
		return single, Script, nil
	case bytes.HasPrefix(first, []byte("{")):
		if line, _, found := bytes.Cut(first, []byte("\n")); found && !json.Valid(line) {
			return single, OTLPJSON, nil // indented
		}
		return lines, OTLPJSON, nil
	case isPrefixed(head, size):
		return prefixed, OTLPProto, nil
	case pproftranslator.IsLegacy(head):
		return single, legacyPprof, nil
	case isText(head):
		return single, "", nil
	}
	fields := wire.New(head) // the first may be longer
	if (fields.Next() || errors.Is(fields.Err, wire.ErrTruncated)) && fields.Field > 0 {
		return single, "", nil
	}
	return single, "", unknown(head)
}

// isPrefixed reports whether content starts with a length and a record of contrib's file exporter or
// of ours. The first byte of a message is never 0, that of a length up to 16 MiB always.
func isPrefixed(head []byte, size int64) bool {
	if len(head) <= prefixSize {
		return false
	}
	length, record := int64(binary.BigEndian.Uint32(head)), head[prefixSize:]
	if length == 0 || head[0] != 0 && length+prefixSize > size {
		return false
	}
	const resourceProfiles, dictionary = 1<<3 | wire.BytesType, 2<<3 | wire.BytesType // the tags of the fields of ProfilesData
	return record[0] == resourceProfiles || record[0] == dictionary || bytes.HasPrefix(record, zstdMagic)
}

// encodingOf recognizes the encoding of a whole record that is text or a message.
func encodingOf(record []byte) (Encoding, error) {
	if isText(record) {
		if pproftranslator.Lookalike(record) == nil && foldedtranslator.IsFolded(record) {
			return Folded, nil
		}
		return "", unknown(record)
	}
	encoding, fields := OTLPProto, wire.New(record)
	for fields.Next() {
		if fields.Type != wire.BytesType || fields.Field != 1 && fields.Field != 2 {
			encoding = Pprof
		}
	}
	if fields.Err != nil {
		return "", unknown(record)
	}
	return encoding, nil
}

func unknown(data []byte) error {
	if known := pproftranslator.Lookalike(data); known != nil {
		return fmt.Errorf("is not a profile: %w", known)
	}
	return fmt.Errorf("is not a profile: must be OTLP protobuf, OTLP/JSON, pprof, JFR, an execution trace of Go, the output of perf script or folded stacks, maybe compressed by gzip or zstd, and starts with %q",
		data[:min(len(data), 16)])
}

// isText reports whether record is text, which may have bytes that are not UTF-8; protobuf messages have control characters.
func isText(record []byte) bool {
	return bytes.IndexFunc(record, func(r rune) bool {
		return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
	}) < 0
}
