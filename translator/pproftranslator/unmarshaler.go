// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pproftranslator turns pprof profiles into OTLP profiles and back.
//
// The way in reads the wire format of pprof itself, one kind of entry after the other, without
// building a tree of objects. It accepts all that google/pprof's ParseUncompressed
// and CheckValid accept, within [Limits], and refuses the rest with an error
// that names the field and the index. Nothing that a sample reaches is lost on
// the way there and back, except for bytes that are not UTF-8, which are escaped as \xff, and for data that the
// other format has no place for (see [Marshaler]).
package pproftranslator

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// Unmarshaler turns pprof profiles into OTLP profiles: one ResourceProfiles with
// one ScopeProfiles, in which each sample type is a Profile, the default one
// first. The zero value is ready for use; it is safe for concurrent use.
//
// The resource has process.executable.name if the mappings name the main binary. The
// scope has pprof.scope.sample_type_order and, if it was set,
// pprof.scope.default_sample_type. The caller sets profile_id.
type Unmarshaler struct {
	// Limits bound the content of a payload.
	Limits Limits
	// TimestampLabel is the numeric label with the time of a sample, in
	// nanoseconds since the epoch. Default: end_timestamp_ns.
	TimestampLabel string
	// TraceIDLabel and SpanIDLabel are the string labels that a link replaces.
	// Defaults: trace_id and span_id.
	TraceIDLabel, SpanIDLabel string
	// FunctionsOfLocations accepts payloads in which every function has the ID 0, as old clients of Pyroscope for .NET
	// send: the function at a position then belongs to the only line of the location at the same position.
	FunctionsOfLocations bool
}

var _ pprofile.Unmarshaler = (*Unmarshaler)(nil)

// IsLinkLabel reports whether a label of this name may make a link and then remains an attribute.
func IsLinkLabel(name string) bool { return fromotlp.IsLinkLabel(name) }

// Report counts the repairs of a translation and measures its result.
type Report struct {
	// InvalidStrings had bytes that are not UTF-8, each of which became \xff.
	InvalidStrings int
	// NegativeTimes are times and durations below zero, which became 0.
	NegativeTimes int
	// SaturatedValues had no room in the sum of equal samples, which is the largest or least int64.
	SaturatedValues int
	// Bytes is about the memory that the result takes, rather more than less.
	Bytes int
}

// maxPooled is the size of a payload, in bytes, after which a decoder is used again. Its memory is a few times that.
const maxPooled = 256 << 10

var decoders = sync.Pool{New: func() any { return &decoder{tables: dictionary.New()} }}

// UnmarshalProfiles translates buf: one pprof message, plain or gzipped. The result
// holds no reference to buf. The error is a *LimitError if buf exceeds one of the
// Limits; any other names the malformed field and its index.
func (u *Unmarshaler) UnmarshalProfiles(buf []byte) (pprofile.Profiles, error) {
	pd, _, err := u.UnmarshalReport(buf)
	return pd, err
}

// UnmarshalReport is UnmarshalProfiles with a Report.
func (u *Unmarshaler) UnmarshalReport(buf []byte) (pprofile.Profiles, Report, error) {
	limits := u.Limits.withDefaults()
	data, err := Decompress(buf, limits.DecompressedSize)
	if err != nil {
		return pprofile.Profiles{}, Report{}, fmt.Errorf("pprof: %w", err)
	}
	return u.unmarshal(data, allowance{bytes: int(min(limits.Memory, math.MaxInt))})
}

// UnmarshalWithin is UnmarshalReport of a plain message whose result may take so many bytes of memory, as Memory returns
// them. Before it takes more, it calls more with how many it needs; an error of that ends the translation.
func (u *Unmarshaler) UnmarshalWithin(
	message []byte, result int64, more func(needed int64) (allowed int64, err error),
) (pprofile.Profiles, Report, error) {
	if limit := u.Limits.withDefaults().DecompressedSize; len(message) > limit {
		return pprofile.Profiles{}, Report{}, &LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(message))}
	}
	return u.unmarshal(message, allowance{int(result), more})
}

func (u *Unmarshaler) unmarshal(message []byte, allowed allowance) (pprofile.Profiles, Report, error) {
	d := decoders.Get().(*decoder)
	d.limits, d.positional = u.Limits.withDefaults(), u.FunctionsOfLocations
	d.names = fromotlp.NewLabels(u.TimestampLabel, u.TraceIDLabel, u.SpanIDLabel)
	d.reset(message)
	d.allowed = allowed
	pd, report, err := d.translate()
	d.release() // not after a panic, which may leave it in any state
	return pd, report, err
}

func (d *decoder) translate() (pprofile.Profiles, Report, error) {
	pd := pprofile.NewProfiles()
	err := d.decode()
	if err == nil {
		d.write(pd)
		err = d.tables.Err()
	}
	if err != nil {
		return pprofile.Profiles{}, Report{}, cmp.Or(lookalikeError(d.data), fmt.Errorf("pprof: %w", err))
	}
	return pd, Report{
		InvalidStrings: d.tables.Repaired() + d.invalid, NegativeTimes: d.negative, SaturatedValues: d.matrix.saturated,
		Bytes: d.sizeOf(pd),
	}, nil
}

func (d *decoder) release() {
	size := len(d.data)
	d.data, d.allowed = nil, allowance{}
	d.labels.reset()
	d.mappings.ids.sparse, d.functions.ids.sparse, d.locations.ids.sparse = nil, nil, nil
	if size <= maxPooled {
		decoders.Put(d)
	}
}

// Decompress returns buf itself if it does not start as gzip, and otherwise the content of
// all its gzip members, in memory of its own. Past limit bytes it stops
// with a *LimitError.
func Decompress(buf []byte, limit int) ([]byte, error) {
	if len(buf) < 2 || buf[0] != 0x1f || buf[1] != 0x8b {
		if len(buf) > limit {
			return nil, &LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(buf))}
		}
		return buf, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(buf))
	if err != nil {
		return nil, errors.New("gzip: the header is malformed")
	}
	var plain bytes.Buffer
	plain.Grow(min(GzipSize(buf), limit) + bytes.MinRead) // so that it never grows for one member
	n, err := plain.ReadFrom(io.LimitReader(reader, int64(min(limit, math.MaxInt-1))+1))
	switch {
	case n > int64(limit):
		return nil, &LimitError{What: "decompressed size in bytes", Limit: int64(limit)}
	case err != nil:
		return nil, fmt.Errorf("gzip: after %d decompressed bytes: %s", n, strings.TrimPrefix(err.Error(), "gzip: "))
	}
	return plain.Bytes(), nil
}

// GzipSize is the length in the trailer of the last member of gzip, as far as so few bytes can become
// that many. If there is one member and it is not corrupt, that is the decompressed size.
func GzipSize(data []byte) int {
	const maxRatio = 1032 // bytes that one byte of gzip can become
	if len(data) < 4 {
		return 0
	}
	return int(min(int64(binary.LittleEndian.Uint32(data[len(data)-4:])), int64(len(data))*maxRatio))
}
