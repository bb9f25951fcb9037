// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// ErrInvalidRecord means that no file can hold the record. A retry does not help.
var ErrInvalidRecord = errors.New("invalid record")

// MaxRecordSize is the length in bytes of the longest record that a Writer accepts.
const MaxRecordSize = 1 << 30

// Content is the encoding of a record. It is part of the file's name.
type Content string

const (
	// OTLPProto records are OTLP ProfilesData messages in protobuf.
	OTLPProto Content = "otlp.pb"
	// OTLPJSON records are OTLP/JSON objects, each on one line.
	OTLPJSON Content = "otlp.jsonl"
	// Pprof records are pprof Profile messages, one in a file.
	Pprof Content = "pprof.pb"
)

var contents = []Content{OTLPProto, OTLPJSON, Pprof}

// Compression is applied to each record separately, with its framing bytes.
type Compression int

const (
	// None leaves records as they are.
	None Compression = iota
	// Gzip makes each record a gzip member.
	Gzip
	// Zstd makes each record a zstd frame with a checksum.
	Zstd
)

// extension is the suffix that a compression adds to a file's name.
func (c Compression) extension() string {
	return [...]string{None: "", Gzip: ".gz", Zstd: ".zst"}[c]
}

// Format is everything that a reader must know about a file.
type Format struct {
	Content Content
	// Bare files hold a single record without framing. Pprof files always do; a name says
	// it only while the file is partial. Otherwise JSON records are lines, and protobuf
	// records are preceded by their length: 4 bytes, big-endian.
	Bare        bool
	Compression Compression
}

// Validate returns an error if there are no files of this format.
func (f Format) Validate() error {
	switch {
	case !slices.Contains(contents, f.Content):
		return fmt.Errorf("content is %q: must be one of %q", f.Content, contents)
	case f.Bare && f.Content == OTLPJSON:
		return fmt.Errorf("content is %q: must be a protobuf message in a bare file", f.Content)
	case f.Compression < None || f.Compression > Zstd:
		return fmt.Errorf("compression is %d: must be between %d and %d", f.Compression, None, Zstd)
	}
	return nil
}

// SingleRecord reports whether a file has one record, without framing.
func (f Format) SingleRecord() bool { return f.Bare || f.Content == Pprof }

// extension is the part of a file's name after the sequence.
func (f Format) extension() string {
	return "." + string(f.Content) + f.Compression.extension()
}

// checkRecord returns an error if the record cannot have this content. It looks at the
// outermost fields only.
func (c Content) checkRecord(record []byte) error {
	switch {
	case len(record) == 0:
		return errors.New("record is empty")
	case len(record) > MaxRecordSize:
		return fmt.Errorf("record has %d bytes, more than %d", len(record), MaxRecordSize)
	case c == OTLPJSON:
		if record[0] != '{' || record[len(record)-1] != '}' {
			return errors.New("record is not a JSON object")
		}
		if bytes.IndexByte(record, '\n') >= 0 {
			return errors.New("record contains a line feed")
		}
	case c == Pprof:
		if !isMessage(record, false) {
			return errors.New("record is not a protobuf message")
		}
	case !isMessage(record, true):
		return errors.New("record is not a protobuf message of length-delimited fields")
	}
	return nil
}

// isMessage reports whether data is protobuf fields from its first byte to its last. All
// fields of an OTLP ProfilesData message are length-delimited.
func isMessage(data []byte, lengthDelimited bool) bool {
	fields := wire.New(data)
	for fields.Next() {
		if fields.Field == 0 || lengthDelimited && fields.Type != wire.BytesType {
			return false
		}
	}
	return fields.Err == nil
}
