// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"fmt"
	"slices"
)

// MaxRecordSize is the length in bytes of the longest record that is written,
// and that is read unless ReaderOptions say otherwise.
const MaxRecordSize = 1 << 30

// Content says what a record is. It is part of a file's name.
type Content string

const (
	// OTLPProto records are OTLP ProfilesData messages in protobuf.
	OTLPProto Content = "otlp.pb"
	// OTLPJSON records are OTLP/JSON objects, each on one line.
	OTLPJSON Content = "otlp.jsonl"
	// Pprof records are pprof Profile messages, each a file.
	Pprof Content = "pprof.pb"
)

var contents = []Content{OTLPProto, OTLPJSON, Pprof}

// Framing says how records lie in a file.
type Framing int

const (
	// LengthPrefixed puts 4 bytes before each record: its length, big-endian.
	LengthPrefixed Framing = iota + 1
	// Lines puts a line feed behind each record.
	Lines
	// Bare files are one record each.
	Bare
)

// Compression is applied to each record by itself, with its framing bytes.
type Compression int

const (
	// None leaves records as they are.
	None Compression = iota
	// Gzip makes each record a gzip member.
	Gzip
	// Zstd makes each record a zstd frame with a checksum.
	Zstd
)

// ending is what a compression adds to a file's name.
func (c Compression) ending() string {
	switch c {
	case Gzip:
		return ".gz"
	case Zstd:
		return ".zst"
	default:
		return ""
	}
}

// Format is everything that one must know to read a file.
type Format struct {
	Content Content
	// Framing zero is the one that Content has by default; a Reader then also
	// recognises Bare files by what is in them.
	Framing     Framing
	Compression Compression
}

// framing gives the default of the content if none is set.
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

// validate returns an error if no file can be written so.
func (f Format) validate() error {
	if !slices.Contains(contents, f.Content) {
		return fmt.Errorf("content %q: want one of %q", f.Content, contents)
	}
	if lines := f.framing() == Lines; lines != (f.Content == OTLPJSON) || f.Content == Pprof && f.framing() != Bare {
		return fmt.Errorf("content %q: cannot have framing %d", f.Content, f.framing())
	}
	if f.framing() < LengthPrefixed || f.framing() > Bare {
		return fmt.Errorf("framing %d: unknown", f.Framing)
	}
	if f.Compression < None || f.Compression > Zstd {
		return fmt.Errorf("compression %d: unknown", f.Compression)
	}
	return nil
}

// extension is what a file's name has behind the sequence, with its dot.
func (f Format) extension() string {
	return "." + string(f.Content) + f.Compression.ending()
}

// checkRecord returns what keeps the record from being one of this content, or
// nil. It looks at the outermost shape only.
func (c Content) checkRecord(record []byte) error {
	switch {
	case len(record) == 0:
		return errorString("record is empty")
	case len(record) > MaxRecordSize:
		return fmt.Errorf("record has %d bytes, more than %d", len(record), MaxRecordSize)
	case c == OTLPJSON:
		if record[0] != '{' || record[len(record)-1] != '}' {
			return errorString("record is not a JSON object")
		}
		if bytes.IndexByte(record, '\n') >= 0 {
			return errorString("record holds a line feed")
		}
		return nil
	case c == Pprof:
		if !isProtobuf(record) {
			return errorString("record is not a protobuf message")
		}
		return nil
	default:
		if !isMessage(record) {
			return errorString("record is not a protobuf message of length-delimited fields")
		}
		return nil
	}
}
