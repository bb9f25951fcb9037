// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// verbatim holds the original payload of a Profile, and its samples as they were received:
// the payload has the same samples, so none is merged or dropped.
type verbatim struct {
	format  string
	payload []byte
	samples []verbatimSample
	values  []int64 // of all samples, one after the other
	times   []uint64
}

type verbatimSample struct {
	identity
	values, times int32 // how many
}

// isVerbatim reports whether the samples of p stay as they are.
func isVerbatim(p pprofile.Profile) bool {
	return p.OriginalPayload().Len() > 0 || p.OriginalPayloadFormat() != ""
}

func verbatimOf(p pprofile.Profile) *verbatim {
	return &verbatim{format: dictionary.ValidUTF8(p.OriginalPayloadFormat()), payload: p.OriginalPayload().AsRaw()}
}

func (v *verbatim) add(of identity, s pprofile.Sample) {
	values, times := s.Values(), s.TimestampsUnixNano()
	if values.Len() == 0 && times.Len() == 0 {
		return // the format forbids it
	}
	v.samples = append(v.samples, verbatimSample{of, int32(values.Len()), int32(times.Len())})
	for i := range values.Len() {
		v.values = append(v.values, values.At(i))
	}
	for i := range times.Len() {
		v.times = append(v.times, times.At(i))
	}
}

func (v *verbatim) retained() int {
	if v == nil {
		return 0
	}
	const sampleSize = 20
	return len(v.payload) + sampleSize*cap(v.samples) + 8*cap(v.values) + 8*cap(v.times)
}

// emitVerbatim writes the samples of a profile in their order.
func (e *emitter) emitVerbatim(p pprofile.Profile, v *verbatim) {
	values, times := v.values, v.times
	p.Samples().EnsureCapacity(len(v.samples))
	for _, from := range v.samples {
		to := p.Samples().AppendEmpty()
		e.emitIdentity(to, from.identity)
		to.Values().FromRaw(values[:from.values])
		to.TimestampsUnixNano().FromRaw(times[:from.times])
		values, times = values[from.values:], times[from.times:]
	}
}

// compareVerbatim orders by content. Profiles without an original payload come first.
func (e *emitter) compareVerbatim(a, b *verbatim) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.format, b.format),
		bytes.Compare(a.payload, b.payload),
		slices.CompareFunc(a.samples, b.samples, func(x, y verbatimSample) int {
			xStack, xSet, xLink := e.canonical.Ranks(x.stack, x.set, x.link)
			yStack, ySet, yLink := e.canonical.Ranks(y.stack, y.set, y.link)
			return cmp.Or(
				cmp.Compare(xStack, yStack),
				cmp.Compare(xSet, ySet),
				cmp.Compare(xLink, yLink),
				cmp.Compare(x.values, y.values),
				cmp.Compare(x.times, y.times),
			)
		}),
		slices.Compare(a.values, b.values),
		slices.Compare(a.times, b.times),
	)
}
