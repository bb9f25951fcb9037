// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/google/pprof/profile"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// Marshaler turns OTLP profiles into pprof. Its zero value is ready; it holds no
// state and is safe for concurrent use.
//
// One pprof has one header and, for each of its sample types, one value in each
// sample, so it is made of several Profiles of one scope:
//
//   - Profiles of a scope that agree in all that a pprof header holds (time,
//     duration, period, period type, comments, drop and keep frames, doc URL)
//     become the sample types of one pprof, matched by {type, unit}. A repeated
//     {type, unit} starts another pprof, with two exceptions: a Profile of plain
//     values and a Profile of timestamps share a sample type, and types repeat
//     within a pprof where pprof.scope.sample_type_order says that they did.
//   - Sample types stand in the order of pprof.scope.sample_type_order, or, where
//     it is not there or does not fit, in that of the Profiles. The default sample
//     type is set only where pprof.scope.default_sample_type is there.
//   - Samples are joined by identity {stack, set of attributes, link}, never by
//     position; what a Profile does not have is 0. Samples with timestamps become
//     one sample a timestamp, joined by {identity, timestamp, how many of the same
//     came before}, with the timestamp as a numeric label without a unit (but 0
//     has the unit nanoseconds, as pprof cannot say a bare 0). Where there are
//     timestamps alone, each counts 1.
//   - Attributes become labels: strings, integers with their unit, arrays of both
//     with one label an element, a link as two labels of lower-case hex. Any other
//     kind of value becomes a string label of what pcommon.Value.AsString says.
//   - The mapping of the resource's process.executable.name comes first, the others
//     in order of first use. Only what a sample reaches is there.
//
// Pprof has no place for profile ids, original payloads, dropped attribute counts,
// schema URLs, other attributes of resource, scope and Profile, and attributes of
// mappings and locations other than build ids, pprof.mapping.has_* and
// pprof.location.is_folded: these are left out. Times and durations over int64
// become its maximum. Strings that are not UTF-8 are repaired with U+FFFD.
type Marshaler struct {
	// TimestampLabel is the numeric label for the timestamp of a sample, in
	// nanoseconds since the epoch. Default: end_timestamp_ns.
	TimestampLabel string
	// TraceIDLabel and SpanIDLabel are the string labels for the ids of a link.
	// Defaults: trace_id and span_id.
	TraceIDLabel string
	SpanIDLabel  string
}

var _ pprofile.Marshaler = Marshaler{}

// MarshalProfiles returns the one pprof that pd holds as a protobuf message, not
// compressed. It fails where pd holds none or more than one, and where
// ConvertProfiles fails. pd is only read.
func (m Marshaler) MarshalProfiles(pd pprofile.Profiles) ([]byte, error) {
	converted, err := m.ConvertProfiles(pd)
	if err != nil {
		return nil, err
	}
	if len(converted) != 1 {
		return nil, fmt.Errorf("the profiles make %d pprofs, want exactly one", len(converted))
	}
	var buf bytes.Buffer
	if err := converted[0].WriteUncompressed(&buf); err != nil {
		return nil, fmt.Errorf("writing a pprof: %w", err)
	}
	return buf.Bytes(), nil
}

// ConvertProfiles returns the pprofs that pd holds, in the order of the first
// Profile of each. They pass CheckValid, and the same pd makes the same pprofs.
//
// pd is only read: it may be read-only and shared. The result belongs to the
// caller and refers to nothing of pd but its strings.
//
// It fails, naming the place, on an index outside its table, on a sample with
// unequally many values and timestamps, on two attributes of one key in a set,
// where values of one identity add up beyond int64, and where a pprof would have
// to spell out over 64 zeros for each value that is there.
func (m Marshaler) ConvertProfiles(pd pprofile.Profiles) ([]*profile.Profile, error) {
	var converted []*profile.Profile
	for p, err := range m.All(pd) {
		if err != nil {
			return nil, err
		}
		converted = append(converted, p)
	}
	return converted, nil
}

// All gives each pprof that ConvertProfiles returns, or, where there cannot be one,
// the error, and goes on with the next. A Profile with two attributes of one key is left
// out of its pprof, with an error of its own. An index outside its table is the one error
// of pd as a whole. pd must stay as it is meanwhile.
func (m Marshaler) All(pd pprofile.Profiles) iter.Seq2[*profile.Profile, error] {
	return func(yield func(*profile.Profile, error) bool) {
		if err := dictionary.Check(pd); err != nil {
			yield(nil, err)
			return
		}
		pd, err := dictionary.ResolveReferences(pd)
		if err != nil {
			yield(nil, err)
			return
		}
		c := newPprofConverter(m, pd.Dictionary())
		for i, rp := range pd.ResourceProfiles().All() {
			executable := baseOfFile(textOf(rp.Resource().Attributes(), attrExecutableName))
			for j, sp := range rp.ScopeProfiles().All() {
				plans, refused := c.planScope(sp)
				for _, err := range refused {
					if !yield(nil, fmt.Errorf("resource_profiles[%d].scope_profiles[%d].%w", i, j, err)) {
						return
					}
				}
				for _, plan := range plans {
					p, err := c.convert(plan, executable)
					if err != nil {
						p, err = nil, fmt.Errorf("resource_profiles[%d].scope_profiles[%d].%w", i, j, err)
					}
					if !yield(p, err) {
						return
					}
				}
			}
		}
	}
}

// orDefault returns name, or fallback where there is none.
func orDefault(name, fallback string) string {
	if name == "" {
		return fallback
	}
	return name
}
