// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"context"
	"io"
	"iter"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// Marshaler turns OTLP profiles into pprof. Its zero value is ready for use; it holds no
// state and is safe for concurrent use.
//
// A pprof has one header and several sample types. The Marshaler makes it of several
// Profiles of one scope:
//
//   - Profiles of a scope with the same header (time, duration, period, period type,
//     comments, drop and keep frames, doc URL) become the sample types of one pprof. A
//     repeated {type, unit} starts another pprof, with two exceptions: a Profile without
//     and a Profile with timestamps share a sample type, and types repeat within a pprof
//     if pprof.scope.sample_type_order says that they did.
//   - Sample types have the order of pprof.scope.sample_type_order. If it is missing or
//     does not fit, they have that of the Profiles. The default sample type is that of
//     pprof.scope.default_sample_type, if it is set.
//   - Samples are joined by identity {stack, set of attributes, link}, never by
//     position; a missing value is 0. A sample with timestamps becomes one sample for
//     each, joined by {identity, timestamp, number of equal ones before it}. The
//     timestamp becomes a numeric label without a unit (0 gets the unit nanoseconds, as
//     pprof cannot express a bare 0). A timestamp without a value counts 1.
//   - Attributes become labels: strings, integers with their unit, arrays of both with
//     one label for each element. A link becomes two labels of lower-case hex. Any other
//     value becomes a string label with the text of pcommon.Value.AsString.
//   - The mapping of the resource's process.executable.name comes first, the others
//     follow in order of first use. Only entries that a sample reaches are included.
//
// Pprof has no place for profile ids, original payloads, dropped attribute counts,
// schema URLs, other attributes of resource, scope and Profile, and attributes of
// mappings and locations other than build ids, pprof.mapping.has_* and
// pprof.location.is_folded: the Marshaler discards these. Times and durations over
// int64 become its maximum. Bytes that are not of UTF-8 are escaped as \xff.
type Marshaler struct {
	// OmitEmpty leaves out the sample types whose Profiles have no samples, and pprofs without samples.
	OmitEmpty bool
	// MaxValues limits the values of all pprofs of a payload together, of which each has one for each of its samples and
	// sample types. 0 is no limit.
	MaxValues int
}

// ErrMaxValues says that the pprofs have more than MaxValues values.
var ErrMaxValues = fromotlp.ErrMaxValues

// WritePprof writes p as a protobuf message, not compressed. Unlike p.WriteUncompressed,
// it keeps labels whose value is 0 without a unit or the empty string. It must not run
// concurrently for one p.
func WritePprof(w io.Writer, p *profile.Profile) error { return fromotlp.Write(w, p) }

// Converted is a pprof, and where in the payload the Profiles are that it was made of.
type Converted = fromotlp.Pprof

// All yields the pprofs that pd holds, in the order of the first Profile of each. WritePprof writes one without loss. They pass CheckValid, and
// equal input gives equal pprofs. It does not change pd, which may be read-only and shared, and must not change meanwhile. Pprofs belong to the
// caller and refer to nothing of pd but its strings.
//
// If a pprof cannot be made, All yields an error, which names the place, and continues with the next: if a sample has different numbers of
// values and timestamps, if the values of one identity overflow int64, and if the pprof would hold over 64 zeros for each value of the
// Profiles. A Profile with two attributes of one key is excluded from its pprof, with an error of its own. An index outside its table is a
// single error for all of pd, without Profiles. Once ctx has ended, each pprof is an error of ctx.
func (m Marshaler) All(ctx context.Context, pd pprofile.Profiles) iter.Seq2[Converted, error] {
	return fromotlp.All(ctx, pd, m.OmitEmpty, m.MaxValues)
}
