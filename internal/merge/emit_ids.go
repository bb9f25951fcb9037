// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// setIDs gives each Profile that has none an id: a hash of its canonical content.
// tables is the digest of the dictionary, which the indices refer to.
func (e *emitter) setIDs(pd pprofile.Profiles, tables []byte) {
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			for k, p := range sp.Profiles().All() {
				if !p.ProfileID().IsEmpty() {
					continue
				}
				e.content = append(e.content[:0], tables...)
				e.content = dictionary.AppendMap(e.content, rp.Resource().Attributes())
				e.content = dictionary.AppendMap(e.content, sp.Scope().Attributes())
				e.appendText(rp.SchemaUrl(), sp.SchemaUrl(), sp.Scope().Name(), sp.Scope().Version())
				e.appendInts(int64(i), int64(j), int64(k))
				e.appendProfile(p)
				sum := sha256.Sum256(e.content)
				p.SetProfileID(pprofile.ProfileID(sum[:16]))
			}
		}
	}
}

func (e *emitter) appendProfile(p pprofile.Profile) {
	e.appendInts(int64(p.SampleType().TypeStrindex()), int64(p.SampleType().UnitStrindex()),
		int64(p.PeriodType().TypeStrindex()), int64(p.PeriodType().UnitStrindex()), p.Period(),
		int64(p.Time()), int64(p.DurationNano()), int64(p.DroppedAttributesCount()), int64(p.AttributeIndices().Len()))
	for _, a := range p.AttributeIndices().All() {
		e.appendInts(int64(a))
	}
	e.appendText(p.OriginalPayloadFormat(), string(p.OriginalPayload().AsRaw()))
	samples := p.Samples()
	for i := range samples.Len() {
		s := samples.At(i)
		attributes, values, times := s.AttributeIndices(), s.Values(), s.TimestampsUnixNano()
		e.appendInts(int64(s.StackIndex()), int64(s.LinkIndex()),
			int64(attributes.Len()), int64(values.Len()), int64(times.Len()))
		for n := range attributes.Len() {
			e.appendInts(int64(attributes.At(n)))
		}
		for n := range values.Len() {
			e.appendInts(values.At(n))
		}
		for n := range times.Len() {
			e.appendInts(int64(times.At(n)))
		}
	}
}

func (e *emitter) appendInts(values ...int64) {
	for _, v := range values {
		e.content = binary.AppendVarint(e.content, v)
	}
}

func (e *emitter) appendText(texts ...string) {
	for _, t := range texts {
		e.content = binary.AppendUvarint(e.content, uint64(len(t)))
		e.content = append(e.content, t...)
	}
}
