// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// Unmarshaler turns pprof profiles into OTLP profiles: one ResourceProfiles with
// one ScopeProfiles, in which each sample type is a Profile, the default one
// first. The zero value is ready for use; it is safe for concurrent use.
//
// The resource holds process.executable.name where the mappings tell it, the
// scope pprof.scope.sample_type_order and, if it was set,
// pprof.scope.default_sample_type. The profile_id is left to the caller.
type Unmarshaler struct {
	// Limits bound what a payload may hold.
	Limits Limits
	// TimestampLabel is the numeric label with the time of a sample, in
	// nanoseconds since the epoch. Default: end_timestamp_ns.
	TimestampLabel string
	// TraceIDLabel and SpanIDLabel are the string labels that a link replaces.
	// Defaults: trace_id and span_id.
	TraceIDLabel, SpanIDLabel string
}

var _ pprofile.Unmarshaler = (*Unmarshaler)(nil)

// Report tells what was mended on the way.
type Report struct {
	// InvalidStrings had bytes that are not UTF-8, which became U+FFFD.
	InvalidStrings int
	// NegativeTimes are times and durations below zero, which became 0.
	NegativeTimes int
}

// maxPooled is how much memory, in bytes, a decoder may keep between payloads.
const maxPooled = 16 << 20

var decoders = sync.Pool{New: func() any { return &decoder{tables: dictionary.New(0)} }}

// UnmarshalProfiles translates buf: one pprof message, plain or compressed by
// gzip. The result holds no reference to buf. The error is a *LimitError if buf
// is over one of the Limits, and otherwise names the field and the index of what
// is malformed.
func (u *Unmarshaler) UnmarshalProfiles(buf []byte) (pprofile.Profiles, error) {
	pd, _, err := u.UnmarshalReport(buf)
	return pd, err
}

// UnmarshalReport is UnmarshalProfiles, and tells what it has mended.
func (u *Unmarshaler) UnmarshalReport(buf []byte) (pprofile.Profiles, Report, error) {
	limits := u.Limits.withDefaults()
	data, err := Decompress(buf, limits.DecompressedSize)
	if err != nil {
		return pprofile.Profiles{}, Report{}, fmt.Errorf("pprof: %w", err)
	}
	d := decoders.Get().(*decoder)
	d.limits = limits
	d.labels = labelNames{
		timestamp: orDefault(u.TimestampLabel, "end_timestamp_ns"),
		traceID:   orDefault(u.TraceIDLabel, "trace_id"),
		spanID:    orDefault(u.SpanIDLabel, "span_id"),
	}
	d.reset(data)
	pd, report, err := d.translate()
	d.release() // not after a panic, which may leave it in any state
	return pd, report, err
}

func (d *decoder) translate() (pprofile.Profiles, Report, error) {
	if err := d.decode(); err != nil {
		return pprofile.Profiles{}, Report{}, err
	}
	pd := d.write()
	if err := d.tables.Err(); err != nil {
		return pprofile.Profiles{}, Report{}, fmt.Errorf("pprof: %w", err)
	}
	return pd, Report{InvalidStrings: d.tables.Repaired(), NegativeTimes: d.clamped}, nil
}

func (d *decoder) release() {
	d.data = nil
	if d.retained() <= maxPooled {
		decoders.Put(d)
	}
}
