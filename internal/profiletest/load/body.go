// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
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
	data    []byte // without its time, gzipped if the profile was
	gzipped bool
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
		b.data = gzipMember(nil, b.data, gzip.DefaultCompression)
	}
	return b, nil
}

// at returns the profile with a time, in nanoseconds since the UNIX epoch. Gzip may have
// several members: only the time is compressed each time.
func (b Body) at(nanos int64) []byte {
	field := binary.AppendUvarint([]byte{timeNanos<<3 | wire.VarintType}, uint64(nanos))
	data := slices.Clip(b.data)
	if b.gzipped {
		return gzipMember(data, field, gzip.StatelessCompression)
	}
	return append(data, field...)
}

func gzipMember(to, data []byte, level int) []byte {
	out := bytes.NewBuffer(to)
	w, _ := gzip.NewWriterLevel(out, level) // fails for an unknown level
	_, _ = w.Write(data)                    // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
