// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// Spans finds the spans that samples of a payload name: by the link of a sample, by its attributes and by those of its Profile.
type Spans struct {
	links  pprofile.LinkSlice
	ofText map[int32][]pcommon.SpanID // by index of the attribute: those that its value may be
}

// SpansOf returns those of pd, of which all indices are valid.
func SpansOf(pd pprofile.Profiles) *Spans {
	dict := pd.Dictionary()
	s := &Spans{dict.LinkTable(), map[int32][]pcommon.SpanID{}}
	for i, a := range dict.AttributeTable().All() {
		if !slices.Contains(spanAttributes, dictionary.ValidString(dict.StringTable(), a.KeyStrindex())) {
			continue
		}
		text := a.Value().AsString()
		if id := spanOf(text); i > 0 && !id.IsEmpty() {
			s.ofText[int32(i)] = spansOfText(text)
		}
	}
	return s
}

// Append appends the spans of a sample, some maybe several times.
func (s *Spans) Append(ids []pcommon.SpanID, p pprofile.Profile, sample pprofile.Sample) []pcommon.SpanID {
	if i := int(sample.LinkIndex()); i > 0 && i < s.links.Len() {
		if id := s.links.At(i).SpanID(); !id.IsEmpty() {
			ids = append(ids, id)
		}
	}
	if len(s.ofText) == 0 {
		return ids
	}
	for _, indices := range [...]pcommon.Int32Slice{p.AttributeIndices(), sample.AttributeIndices()} {
		for k := range indices.Len() {
			ids = append(ids, s.ofText[indices.At(k)]...)
		}
	}
	return ids
}

// spanOf parses the ID of a span in hex or, as pprof labels have it, decimal digits.
func spanOf(text string) (id pcommon.SpanID) {
	if parseID(text, id[:]) != nil {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			binary.BigEndian.PutUint64(id[:], n)
		}
	}
	return id
}

// spansOfText returns the spans that a Selection finds by the value of an attribute: 16 decimal digits may be hex digits.
func spansOfText(text string) (ids []pcommon.SpanID) {
	var id pcommon.SpanID
	if parseID(text, id[:]) == nil && text == hex.EncodeToString(id[:]) {
		ids = append(ids, id)
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && text == strconv.FormatUint(n, 10) {
		binary.BigEndian.PutUint64(id[:], n)
		ids = append(ids, id)
	}
	return ids
}
