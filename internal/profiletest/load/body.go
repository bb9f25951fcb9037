// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// timeNanos is the number of the field time_nanos in pprof's Profile message.
const timeNanos = 9

// Body is a profile that can be sent any number of times, each time with another
// time_nanos, so that no receiver treats it as a duplicate.
type Body struct {
	data    []byte // without its time; if gzipped, up to the end of its last block
	gzipped bool
	crc     uint32 // of the profile without its time
	size    int    // and its size in bytes
	// PprofSize is the size of the profile without compression, in bytes.
	PprofSize int
}

// NewBody returns a Body for a pprof profile, gzipped or not.
func NewBody(data []byte) (Body, error) {
	plain, gzipped := data, bytes.HasPrefix(data, []byte{0x1f, 0x8b})
	if gzipped {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			plain, err = io.ReadAll(r)
		}
		if err != nil {
			return Body{}, fmt.Errorf("gzip: %w", err)
		}
	}
	b := Body{gzipped: gzipped, PprofSize: len(plain)}
	c := wire.New(plain)
	for start := 0; c.Next(); start = c.At {
		if c.Field != timeNanos {
			b.data = append(b.data, plain[start:c.At]...)
		}
	}
	if c.Err != nil {
		return Body{}, fmt.Errorf("pprof: byte %d: %w", c.At, c.Err)
	}
	if gzipped {
		b.crc, b.size = crc32.ChecksumIEEE(b.data), len(b.data)
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(b.data) // a buffer takes everything
		_ = w.Flush()
		b.data = out.Bytes()
	}
	return b, nil
}

// at returns the profile with a time, in nanoseconds since the UNIX epoch. A last block of gzip holds
// the time without compression.
func (b Body) at(nanos int64) []byte {
	field := binary.AppendUvarint([]byte{timeNanos<<3 | wire.VarintType}, uint64(nanos))
	data := slices.Clip(b.data)
	if !b.gzipped {
		return append(data, field...)
	}
	const finalStored = 1
	data = binary.LittleEndian.AppendUint16(append(data, finalStored), uint16(len(field)))
	data = binary.LittleEndian.AppendUint16(data, ^uint16(len(field)))
	data = append(data, field...)
	data = binary.LittleEndian.AppendUint32(data, crc32.Update(b.crc, crc32.IEEETable, field))
	return binary.LittleEndian.AppendUint32(data, uint32(b.size+len(field)))
}
