// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"bytes"

	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/gzip"
	"google.golang.org/protobuf/encoding/protowire"
)

// timeNanos is the number of the field time_nanos in pprof's Profile message.
const timeNanos = 9

// Body is a profile that can be sent any number of times, each time as a profile of
// another time, so that no receiver takes it for one that it has.
type Body struct {
	data    []byte // without its time, gzipped if the profile was
	gzipped bool
	// PprofSize is of the profile without compression, in bytes.
	PprofSize int
}

// NewBody takes a pprof profile, gzipped or not. It fails if that cannot be read.
func NewBody(data []byte) (Body, error) {
	plain, gzipped := data, bytes.HasPrefix(data, []byte{0x1f, 0x8b})
	if gzipped {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return Body{}, fmt.Errorf("gzip: %w", err)
		}
		if plain, err = io.ReadAll(r); err != nil {
			return Body{}, fmt.Errorf("gzip: %w", err)
		}
	}
	b := Body{gzipped: gzipped, PprofSize: len(plain)}
	for at := 0; at < len(plain); {
		number, _, size := protowire.ConsumeField(plain[at:])
		if size < 0 {
			return Body{}, fmt.Errorf("pprof: at byte %d: %w", at, protowire.ParseError(size))
		}
		if number != timeNanos {
			b.data = append(b.data, plain[at:at+size]...)
		}
		at += size
	}
	if gzipped {
		b.data = gzipMember(nil, b.data, gzip.DefaultCompression)
	}
	return b, nil
}

// at returns the profile as of a time, in nanoseconds since the UNIX epoch. Gzip may
// have several members, so what is in front need not be compressed again.
func (b Body) at(nanos int64) []byte {
	field := protowire.AppendVarint(protowire.AppendTag(nil, timeNanos, protowire.VarintType), uint64(nanos))
	data := slices.Clip(b.data)
	if b.gzipped {
		return gzipMember(data, field, gzip.StatelessCompression)
	}
	return append(data, field...)
}

func gzipMember(to, data []byte, level int) []byte {
	out := bytes.NewBuffer(to)
	w, err := gzip.NewWriterLevel(out, level)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // a level that exists, and a buffer, give none
	}
	return out.Bytes()
}
