// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// ErrInvalidRecord means that no segment can hold the record. A retry does not help.
var ErrInvalidRecord = errors.New("invalid record")

// MaxRecordSize is the length in bytes of the longest record.
const MaxRecordSize = 1 << 30

// MaxRecordMemory is the memory in bytes that a record in a group takes when it is decoded, unless it is one pprof, whose Profiles
// belong together: those who write records write smaller ones, and readers read such a record whatever else limits
// their memory.
const MaxRecordMemory = 8 << 20

// Format is how records are encoded. It is the extension of a file's name.
type Format string

const (
	// Proto is OTLP protobuf in zstd frames.
	Proto Format = "otlp.pb.zst"
	// JSON is OTLP/JSON, a record a line.
	JSON Format = "otlp.jsonl"
)

// checkRecord returns an error if the record cannot have this format. It looks at the outermost fields only.
func (f Format) checkRecord(record []byte) error {
	switch {
	case len(record) == 0:
		return errors.New("record is empty")
	case len(record) > MaxRecordSize:
		return fmt.Errorf("record has %d bytes, more than %d", len(record), MaxRecordSize)
	case f == Proto:
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

const (
	prefixSize = 4 // bytes of a length
	lineFeed   = '\n'
	// Larger buffers are not kept for the next record.
	maxPooled = 16 << 20
)

// Encoder encodes records. It is not safe for concurrent use.
type Encoder struct{ framed, compressed []byte }

var encoders = sync.Pool{New: func() any { return new(Encoder) }}

// NewEncoder returns an Encoder, whose owner calls Release.
func NewEncoder() *Encoder { return encoders.Get().(*Encoder) }

// Release keeps the memory for other Encoders.
func (e *Encoder) Release() {
	if cap(e.framed)+cap(e.compressed) <= maxPooled {
		encoders.Put(e)
	}
}

// Encode returns a record as it is in a segment, valid until the next call. The error is ErrInvalidRecord.
func (e *Encoder) Encode(format Format, record []byte) ([]byte, error) {
	if err := format.checkRecord(record); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidRecord, err)
	}
	e.framed = slices.Grow(e.framed[:0], len(record)+prefixSize)
	if format == JSON {
		e.framed = append(append(e.framed, record...), lineFeed)
		return e.framed, nil
	}
	e.framed = append(binary.BigEndian.AppendUint32(e.framed, uint32(len(record))), record...)
	e.compressed = zstdEncoder().EncodeAll(e.framed, e.compressed[:0])
	return e.compressed, nil
}

// zstdEncoder is shared by all Encoders: EncodeAll may be called concurrently, and an encoder retains megabytes.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
		// With the default of 8 MiB, each of the concurrent encodings retains 16 MiB once it has seen a large record.
		// Profiles do not get smaller by it: the dictionary leaves no repetitions that far apart.
		zstd.WithWindowSize(1<<20))
	return w // an error would be of the options
})
