// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/gunzip"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/semconv"
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
	// LinkLabels are labels that make a link and remain attributes.
	LinkLabels LinkLabels
}

var _ pprofile.Unmarshaler = (*Unmarshaler)(nil)

// LinkLabels are the names of labels that make a link and remain attributes.
type LinkLabels = semconv.LinkLabels

// DefaultLinkLabels returns the default names of these labels.
func DefaultLinkLabels() LinkLabels { return semconv.DefaultLinkLabels() }

// Report counts the repairs of a translation and measures its result.
type Report struct {
	// InvalidStrings had bytes that are not UTF-8, which became U+FFFD.
	InvalidStrings int
	// NegativeTimes are times and durations below zero, which became 0.
	NegativeTimes int
	// Bytes is about the memory that the result takes, rather more than less.
	Bytes int
}

// maxPooled is how much memory, in bytes, a decoder may keep for the next payload.
const maxPooled = 2 << 20

var decoders = sync.Pool{New: func() any { return &decoder{tables: dictionary.New(0)} }}

// UnmarshalProfiles translates buf: one pprof message, plain or gzipped. The result
// holds no reference to buf. The error is a *LimitError if buf exceeds one of the
// Limits; any other names the malformed field and its index.
func (u *Unmarshaler) UnmarshalProfiles(buf []byte) (pprofile.Profiles, error) {
	pd, _, err := u.UnmarshalReport(buf, nil)
	return pd, err
}

// UnmarshalReport is UnmarshalProfiles with a Report. Unless reserve is nil, it calls
// reserve with the bytes of memory that the translation takes so far in total, except for
// those of buf, before it takes them. An error of reserve ends the translation. If that
// is a *LimitError because of values that are 0, it leaves these out instead.
func (u *Unmarshaler) UnmarshalReport(buf []byte, reserve func(bytes int64) error) (pprofile.Profiles, Report, error) {
	limits := u.Limits.withDefaults()
	data, err := Decompress(buf, limits.DecompressedSize)
	if err != nil {
		return pprofile.Profiles{}, Report{}, fmt.Errorf("pprof: %w", err)
	}
	d := decoders.Get().(*decoder)
	d.limits, d.memory = limits, memory{reserve: reserve, before: d.retained()}
	d.names = semconv.NewLabels(u.TimestampLabel, u.TraceIDLabel, u.SpanIDLabel, u.LinkLabels)
	d.reset(data)
	pd, report, err := d.translate()
	d.release() // not after a panic, which may leave it in any state
	return pd, report, err
}

func (d *decoder) translate() (pprofile.Profiles, Report, error) {
	pd := pprofile.NewProfiles()
	if err := d.decode(pd.Dictionary()); err != nil {
		if other := lookalikeError(d.data); other != nil {
			return pprofile.Profiles{}, Report{}, other
		}
		return pprofile.Profiles{}, Report{}, fmt.Errorf("pprof: %w", err)
	}
	err := d.reserveResult()
	if err == nil {
		d.write(pd)
		err = d.tables.Err()
	}
	if err != nil {
		return pprofile.Profiles{}, Report{}, fmt.Errorf("pprof: %w", err)
	}
	return pd, Report{InvalidStrings: d.tables.Repaired() + d.invalid, NegativeTimes: d.negative, Bytes: d.sizeOf(pd)}, nil
}

func (d *decoder) release() {
	d.data, d.memory = nil, memory{}
	clear(d.labels.keys) // which refer to the payload
	d.mappings.sparse, d.functions.sparse, d.locations.sparse = nil, nil, nil
	d.tables.Release()
	if d.retained() <= maxPooled {
		decoders.Put(d)
	}
}

// Decompress returns buf itself if it does not start as gzip, and otherwise the content of
// all its gzip members, in memory of its own. Past limit bytes it stops
// with a *LimitError.
func Decompress(buf []byte, limit int) ([]byte, error) {
	if !gunzip.Is(buf) {
		if len(buf) > limit {
			return nil, &LimitError{What: "size in bytes", Limit: int64(limit), Got: int64(len(buf))}
		}
		return buf, nil
	}
	plain, err := gunzip.Decompress(buf, limit, func(int64) error { return nil })
	if errors.Is(err, gunzip.ErrLimit) {
		return nil, &LimitError{What: "decompressed size in bytes", Limit: int64(limit)}
	}
	return plain, err
}
