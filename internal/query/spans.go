// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// EachSpan calls visit with the samples of each span in pd: those whose link or attributes have its ID. Until visit
// returns, its payload has the dictionary of pd.
func EachSpan(pd pprofile.Profiles, visit func(pcommon.SpanID, pprofile.Profiles) error) error {
	for _, id := range spansOf(pd) {
		part := pprofile.NewProfiles()
		pd.ResourceProfiles().CopyTo(part.ResourceProfiles())
		pd.Dictionary().MoveTo(part.Dictionary())
		(&Selection{SpanIDs: []pcommon.SpanID{id}}).Filter(part)
		err := visit(id, part)
		part.Dictionary().MoveTo(pd.Dictionary())
		if err != nil {
			return err
		}
	}
	return nil
}

// spansOf returns the IDs of all spans of samples, in order.
func spansOf(pd pprofile.Profiles) []pcommon.SpanID {
	dict, found := pd.Dictionary(), map[pcommon.SpanID]bool{}
	ofAttribute := map[int32]pcommon.SpanID{}
	for i, a := range dict.AttributeTable().All() {
		if slices.Contains(spanAttributes, dictionary.ValidString(dict.StringTable(), a.KeyStrindex())) {
			if id := spanOf(a.Value().AsString()); !id.IsEmpty() {
				ofAttribute[int32(i)] = id
			}
		}
	}
	add := func(attributes pcommon.Int32Slice) {
		for _, i := range attributes.All() {
			if id, ok := ofAttribute[i]; ok {
				found[id] = true
			}
		}
	}
	links := dict.LinkTable()
	for p := range sampletypes.ProfilesOf(pd) {
		add(p.AttributeIndices())
		for _, s := range p.Samples().All() {
			add(s.AttributeIndices())
			if i := int(s.LinkIndex()); i > 0 && i < links.Len() && !links.At(i).SpanID().IsEmpty() {
				found[links.At(i).SpanID()] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b pcommon.SpanID) int { return bytes.Compare(a[:], b[:]) })
}

// spanOf returns the ID that is an attribute, in hexadecimal or decimal digits, or an empty one.
func spanOf(text string) (id pcommon.SpanID) {
	if parseID(text, id[:]) != nil {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			binary.BigEndian.PutUint64(id[:], n)
		}
	}
	return id
}
