// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// EachSpan calls visit with the summaries of the part of pd that each span has. A sample that names several spans counts for each of
// them. Spans that takes rejects are left out: it is called with each span, in the order of their IDs, before visit. pd has passed
// dictionary.CheckValues. The summaries may take room bytes.
func EachSpan(pd pprofile.Profiles, room int64, takes func(pcommon.SpanID) bool, visit func(pcommon.SpanID, *contents.Summary) error) error {
	s := spansOf(pd)
	all := slices.AppendSeq(make([]pcommon.SpanID, 0, len(s.places)), maps.Keys(s.places))
	slices.SortFunc(all, func(a, b pcommon.SpanID) int { return bytes.Compare(a[:], b[:]) })
	taken := all[:0]
	for _, id := range all {
		if takes(id) {
			s.places[id] = len(taken)
			taken = append(taken, id)
		} else {
			delete(s.places, id)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	var ofSpans parts
	var ids []pcommon.SpanID
	err := eachPart(pd, int(room/summarySize), func(_ pprofile.ResourceProfiles, p pprofile.Profile) []contents.Part {
		samples := p.Samples()
		if samples.Len() == 0 {
			return nil
		}
		ofSpans.reset(p)
		for _, id := range s.ofAttributes(nil, p.AttributeIndices()) { // these have all samples
			if place, isTaken := s.places[id]; isTaken {
				ofSpans.addProfile(place)
			}
		}
		for i := range samples.Len() {
			sample := samples.At(i)
			ids = s.ofAttributes(ids[:0], sample.AttributeIndices())
			if link := s.link(sample); !link.IsEmpty() {
				ids = append(ids, link)
			}
			for _, id := range ids {
				if place, isTaken := s.places[id]; isTaken {
					ofSpans.addSample(place, i)
				}
			}
		}
		return ofSpans.finish()
	}, func(part int, of *contents.Summary) error { return visit(taken[part], of) })
	if errors.Is(err, errManySums) {
		return fmt.Errorf("the sums of the spans of a record take more than %d MiB of memory; %s", room>>20, narrow)
	}
	return err
}

// spans are those of a payload.
type spans struct {
	links  pprofile.LinkSlice
	places map[pcommon.SpanID]int     // of those that count
	ofText map[int32][]pcommon.SpanID // by index of the attribute: those that its value may be
}

// spansOf finds the spans that samples of pd name.
func spansOf(pd pprofile.Profiles) *spans {
	dict := pd.Dictionary()
	s := &spans{dict.LinkTable(), map[pcommon.SpanID]int{}, map[int32][]pcommon.SpanID{}}
	named := map[int32]pcommon.SpanID{}
	for i, a := range dict.AttributeTable().All() {
		if !slices.Contains(spanAttributes, dictionary.ValidString(dict.StringTable(), a.KeyStrindex())) {
			continue
		}
		text := a.Value().AsString()
		if id := spanOf(text); i > 0 && !id.IsEmpty() {
			named[int32(i)] = id
			s.ofText[int32(i)] = spansOfText(text)
		}
	}
	add := func(attributes pcommon.Int32Slice) {
		for _, i := range attributes.All() {
			if id, ok := named[i]; ok {
				s.places[id] = 0
			}
		}
	}
	for p := range sampletypes.ProfilesOf(pd) {
		add(p.AttributeIndices())
		for _, sample := range p.Samples().All() {
			add(sample.AttributeIndices())
			if id := s.link(sample); !id.IsEmpty() {
				s.places[id] = 0
			}
		}
	}
	return s
}

// link returns the span of the link of a sample, if it has one.
func (s *spans) link(sample pprofile.Sample) (id pcommon.SpanID) {
	if i := int(sample.LinkIndex()); i > 0 && i < s.links.Len() {
		id = s.links.At(i).SpanID()
	}
	return id
}

// ofAttributes appends the spans that attributes name.
func (s *spans) ofAttributes(ids []pcommon.SpanID, attributes pcommon.Int32Slice) []pcommon.SpanID {
	for k := range attributes.Len() {
		ids = append(ids, s.ofText[attributes.At(k)]...)
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
