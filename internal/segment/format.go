// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

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

// Known reports whether c is one of the contents of this package.
func (c Content) Known() bool { return slices.Contains(contents, c) }

// Framing says how records follow each other in a file.
type Framing int

const (
	// LengthPrefixed puts the record's length before it: 4 bytes, big-endian.
	LengthPrefixed Framing = iota + 1
	// Lines puts a line feed after each record.
	Lines
	// Bare files are one record each.
	Bare
)

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

// extension is what a compression adds to a file's name.
func (c Compression) extension() string {
	return [...]string{None: "", Gzip: ".gz", Zstd: ".zst"}[c]
}

// Format is everything that a reader must know about a file.
type Format struct {
	Content Content
	// Framing 0 is the default of Content. A Reader then also accepts Bare files, which
	// it recognizes by their content.
	Framing     Framing
	Compression Compression
}

// framing returns the default of the content if none is set.
func (f Format) framing() Framing {
	switch {
	case f.Framing != 0:
		return f.Framing
	case f.Content == OTLPJSON:
		return Lines
	case f.Content == Pprof:
		return Bare
	default:
		return LengthPrefixed
	}
}

func (f Format) validate() error {
	if !f.Content.Known() {
		return fmt.Errorf("content is %q: must be one of %q", f.Content, contents)
	}
	if f.framing() < LengthPrefixed || f.framing() > Bare {
		return fmt.Errorf("framing is %d: must be between %d and %d", f.Framing, LengthPrefixed, Bare)
	}
	if lines := f.framing() == Lines; lines != (f.Content == OTLPJSON) || f.Content == Pprof && f.framing() != Bare {
		return fmt.Errorf("framing is %d: must be one that content %q can have", f.framing(), f.Content)
	}
	if f.Compression < None || f.Compression > Zstd {
		return fmt.Errorf("compression is %d: must be between %d and %d", f.Compression, None, Zstd)
	}
	return nil
}

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
