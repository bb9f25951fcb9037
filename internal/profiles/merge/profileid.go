// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// idHasher keeps its memory from payload to payload. The zero value is ready for use.
type idHasher struct{ content []byte }

// SetIDs gives each Profile of pd that has none an id. The same content, in the same place of pd, has the
// same id. tables is a digest of the dictionary, which the indices refer to.
func (h *idHasher) SetIDs(pd pprofile.Profiles, tables []byte) {
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			for k, p := range sp.Profiles().All() {
				if !p.ProfileID().IsEmpty() {
					continue
				}
				h.content = append(h.content[:0], tables...)
				h.content = dictionary.AppendMap(h.content, rp.Resource().Attributes())
				h.content = dictionary.AppendMap(h.content, sp.Scope().Attributes())
				h.appendText(rp.SchemaUrl(), sp.SchemaUrl(), sp.Scope().Name(), sp.Scope().Version())
				h.appendInts(int64(i), int64(j), int64(k))
				h.appendProfile(p)
				sum := sha256.Sum256(h.content)
				p.SetProfileID(pprofile.ProfileID(sum[:16]))
			}
		}
	}
}

func (h *idHasher) appendProfile(p pprofile.Profile) {
	h.appendInts(int64(p.SampleType().TypeStrindex()), int64(p.SampleType().UnitStrindex()),
		int64(p.PeriodType().TypeStrindex()), int64(p.PeriodType().UnitStrindex()), p.Period(),
		int64(p.Time()), int64(p.DurationNano()), int64(p.DroppedAttributesCount()), int64(p.AttributeIndices().Len()))
	for _, a := range p.AttributeIndices().All() {
		h.appendInts(int64(a))
	}
	h.appendText(p.OriginalPayloadFormat(), string(p.OriginalPayload().AsRaw()))
	samples := p.Samples()
	for i := range samples.Len() {
		s := samples.At(i)
		attributes, values, times := s.AttributeIndices(), s.Values(), s.TimestampsUnixNano()
		h.appendInts(int64(s.StackIndex()), int64(s.LinkIndex()),
			int64(attributes.Len()), int64(values.Len()), int64(times.Len()))
		for n := range attributes.Len() {
			h.appendInts(int64(attributes.At(n)))
		}
		for n := range values.Len() {
			h.appendInts(values.At(n))
		}
		for n := range times.Len() {
			h.appendInts(int64(times.At(n)))
		}
	}
}

func (h *idHasher) appendInts(values ...int64) {
	for _, v := range values {
		h.content = binary.AppendVarint(h.content, v)
	}
}

func (h *idHasher) appendText(texts ...string) {
	for _, t := range texts {
		h.content = binary.AppendUvarint(h.content, uint64(len(t)))
		h.content = append(h.content, t...)
	}
}
