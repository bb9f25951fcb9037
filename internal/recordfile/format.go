// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

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

// extensions are the suffixes that compressions add to a file's name.
var extensions = [...]string{None: "", Gzip: ".gz", Zstd: ".zst"}

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
}

const (
	nameTime      = "20060102T150405.000Z"
	partialSuffix = ".partial"
)

var nameParts = regexp.MustCompile(`^profiles-([0-9T.]+Z)-([0-9]+)\.(otlp\.pb|otlp\.jsonl)(\.gz|\.zst)?(\.partial)?$`)

func (n Name) String() string {
	name := fmt.Sprintf("profiles-%s-%06d.%s%s", n.Time.UTC().Format(nameTime), n.Sequence, n.Format.Content, extensions[n.Format.Compression])
	if n.Partial {
		name += partialSuffix
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
	created, timeErr := time.Parse(nameTime, parts[1])
	sequence, sequenceErr := strconv.ParseUint(parts[2], 10, 63)
	if timeErr != nil || sequenceErr != nil {
		return Name{}, false
	}
	parsed = Name{Time: created, Sequence: sequence, Format: Format{Content: Content(parts[3])}, Partial: parts[5] != ""}
	for c, extension := range extensions {
		if parts[4] == extension {
			parsed.Format.Compression = Compression(c)
		}
	}
	return parsed, parsed.String() == name
}
