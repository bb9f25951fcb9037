// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

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
)

// Compression is applied to each record separately, with its framing bytes. It is the suffix that it adds to the file's
// name.
type Compression string

const (
	// None leaves records as they are.
	None Compression = ""
	// Gzip makes each record a gzip member.
	Gzip Compression = ".gz"
	// Zstd makes each record a zstd frame with a checksum.
	Zstd Compression = ".zst"
)

// Format is everything that a reader must know about a file.
type Format struct {
	Content     Content
	Compression Compression
}

// checkRecord returns an error if the record cannot have this content. It looks at the
// outermost fields only.
func (c Content) checkRecord(record []byte) error {
	switch {
	case len(record) == 0:
		return errors.New("record is empty")
	case len(record) > MaxRecordSize:
		return fmt.Errorf("record has %d bytes, more than %d", len(record), MaxRecordSize)
	case c == OTLPProto:
		fields := wire.New(record)
		for fields.Next() {
			if fields.Field == 0 || fields.Type != wire.BytesType { // as all fields of a ProfilesData message
				return errors.New("record is not a protobuf message of length-delimited fields")
			}
		}
		return fields.Err
	case record[0] != '{' || record[len(record)-1] != '}':
		return errors.New("record is not a JSON object")
	case bytes.IndexByte(record, lineFeed) >= 0:
		return errors.New("record contains a line feed")
	default:
		return nil
	}
}

// Name is a parsed file name.
type Name struct {
	// Time is when the file was created, in UTC, to the millisecond.
	Time time.Time
	// Sequence distinguishes files of the same millisecond.
	Sequence uint64
	Format   Format
	// Partial is set while the file is being written.
	Partial bool
	// Span is for files that replace others: those that were created from Time on for so long. Otherwise it is 0.
	Span time.Duration
}

// End is the last time for which the file may have been written.
func (n *Name) End() time.Time { return n.Time.Add(n.Span) }

// PartialSuffix is that of a Partial name.
const PartialSuffix = ".partial"

// ManifestSuffix is that of the manifest of a file that replaces others. Its package is internal/archive.
const ManifestSuffix = ".replaces"

// ManifestName returns the name of the manifest of a file in the same directory.
func ManifestName(name string) string { return "." + name + ManifestSuffix }

const nameTime = "20060102T150405.000Z"

var nameParts = regexp.MustCompile(`^profiles-([0-9T.]+Z)-([0-9]+)(\.[0-9hms]+)?\.(otlp\.pb|otlp\.jsonl)(\.gz|\.zst)?(\.partial)?$`)

func (n Name) String() string {
	span := ""
	if n.Span > 0 {
		span = "." + n.Span.String()
	}
	name := fmt.Sprintf("profiles-%s-%06d%s.%s%s", n.Time.UTC().Format(nameTime), n.Sequence, span, n.Format.Content, n.Format.Compression)
	if n.Partial {
		name += PartialSuffix
	}
	return name
}

// ParseName parses a file's name without its directory. ok is false if this package
// writes no file of that name.
func ParseName(name string) (parsed Name, ok bool) {
	parts := nameParts.FindStringSubmatch(name)
	if parts == nil {
		return Name{}, false
	}
	// If one of them is none, String returns another name.
	created, _ := time.Parse(nameTime, parts[1])
	sequence, _ := strconv.ParseUint(parts[2], 10, 63)
	span, _ := time.ParseDuration(strings.TrimPrefix(parts[3], "."))
	parsed = Name{Time: created, Sequence: sequence, Format: Format{Content(parts[4]), Compression(parts[5])}, Partial: parts[6] != "", Span: span}
	return parsed, parsed.String() == name
}

const (
	prefixSize = 4 // bytes of a length
	lineFeed   = '\n'
	// Up to this many bytes, copying a record next to its framing is cheaper than a
	// second write.
	maxCopied = 64 << 10
	// Larger buffers are not kept for the next record.
	maxPooled = 16 << 20
)

// encoder frames and compresses a record.
type encoder struct{ framed, compressed []byte }

var encoders = sync.Pool{New: func() any { return new(encoder) }}

// release keeps the memory for the next record.
func (e *encoder) release() {
	if cap(e.framed)+cap(e.compressed) <= maxPooled {
		encoders.Put(e)
	}
}

// encode returns a record as it is written to a file: its framing and itself, or all in one. The chunks are valid until
// release, and may refer to the record. The error is ErrInvalidRecord if no file can hold the record.
func (e *encoder) encode(format Format, record []byte) (chunks [][]byte, err error) {
	if err := format.Content.checkRecord(record); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidRecord, err)
	}
	prefix, suffix := binary.BigEndian.AppendUint32(nil, uint32(len(record))), []byte(nil)
	if format.Content == OTLPJSON {
		prefix, suffix = nil, []byte{lineFeed}
	}
	if format.Compression == None && len(record) > maxCopied {
		return [][]byte{prefix, record, suffix}, nil
	}
	e.framed = slices.Grow(e.framed[:0], len(record)+prefixSize)
	e.framed = append(append(append(e.framed, prefix...), record...), suffix...)
	switch format.Compression {
	case Gzip:
		compressed := bytes.NewBuffer(e.compressed[:0])
		w := gzipWriters.Get().(*gzip.Writer)
		defer gzipWriters.Put(w)
		w.Reset(compressed)
		_, _ = w.Write(e.framed) // never fails: the buffer takes everything
		_ = w.Close()
		e.compressed = compressed.Bytes()
	case Zstd:
		e.compressed = zstdEncoder().EncodeAll(e.framed, e.compressed[:0])
	default:
		return [][]byte{e.framed}, nil
	}
	return [][]byte{e.compressed}, nil
}

var gzipWriters = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// zstdEncoder is shared by all Writers: EncodeAll may be called concurrently, and an
// encoder retains megabytes.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
		// With the default of 8 MiB, each of the concurrent encodings retains 16 MiB once it has
		// seen a large record. Profiles do not get smaller by it: the dictionary leaves no
		// repetitions that far apart.
		zstd.WithWindowSize(1<<20))
	return w // an error would be of the options
})
