// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// splitter takes resources out of profiles, with the part of the dictionary that
// they reach. Entries are copied as they are, in order of first use. The profiles
// must have passed dictionary.Check; they are only read.
type splitter struct {
	from pprofile.Profiles
	dict pprofile.ProfilesDictionary
	to   pprofile.ProfilesDictionary

	strings, mappings, locations, functions, links, attributes, stacks selection
}

// selection is what is used of one table.
type selection struct {
	place []int32 // by index in the source, that in the result plus 1; 0 if not used
	used  []int32
}

// use gives the index in the result, and whether it is new and the entry is to be
// appended. An empty table has nothing to append, even at index 0.
func (s *selection) use(i int32) (place int32, added bool) {
	if int(i) >= len(s.place) {
		return 0, false
	}
	if p := s.place[i]; p > 0 {
		return p - 1, false
	}
	s.used = append(s.used, i)
	place = int32(len(s.used))
	s.place[i] = place
	return place - 1, true
}

// reset takes time for what was used only, not for the whole table.
func (s *selection) reset() {
	for _, i := range s.used {
		s.place[i] = 0
	}
	s.used = s.used[:0]
}

func newSplitter(from pprofile.Profiles) *splitter {
	s := &splitter{from: from, dict: from.Dictionary()}
	s.strings.place = make([]int32, s.dict.StringTable().Len())
	s.mappings.place = make([]int32, s.dict.MappingTable().Len())
	s.locations.place = make([]int32, s.dict.LocationTable().Len())
	s.functions.place = make([]int32, s.dict.FunctionTable().Len())
	s.links.place = make([]int32, s.dict.LinkTable().Len())
	s.attributes.place = make([]int32, s.dict.AttributeTable().Len())
	s.stacks.place = make([]int32, s.dict.StackTable().Len())
	return s
}

// take gives profiles with the resources of the given numbers.
func (s *splitter) take(resources []int) pprofile.Profiles {
	for _, table := range []*selection{&s.strings, &s.mappings, &s.locations, &s.functions, &s.links, &s.attributes, &s.stacks} {
		table.reset()
	}
	taken := pprofile.NewProfiles()
	s.to = taken.Dictionary()
	// Index 0 means nothing, and stays 0.
	s.text(0)
	s.attribute(0)
	s.function(0)
	s.mapping(0)
	s.location(0)
	s.stack(0)
	s.link(0)
	taken.ResourceProfiles().EnsureCapacity(len(resources))
	for _, i := range resources {
		rp := taken.ResourceProfiles().AppendEmpty()
		s.from.ResourceProfiles().At(i).CopyTo(rp)
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				s.profile(p)
			}
		}
	}
	return taken
}

func (s *splitter) profile(p pprofile.Profile) {
	s.valueType(p.SampleType())
	s.valueType(p.PeriodType())
	s.attributeIndices(p.AttributeIndices())
	for _, sample := range p.Samples().All() {
		sample.SetStackIndex(s.stack(sample.StackIndex()))
		sample.SetLinkIndex(s.link(sample.LinkIndex()))
		s.attributeIndices(sample.AttributeIndices())
	}
}

func (s *splitter) valueType(t pprofile.ValueType) {
	t.SetTypeStrindex(s.text(t.TypeStrindex()))
	t.SetUnitStrindex(s.text(t.UnitStrindex()))
}

func (s *splitter) attributeIndices(indices pcommon.Int32Slice) {
	for i := range indices.Len() {
		indices.SetAt(i, s.attribute(indices.At(i)))
	}
}

func (s *splitter) text(i int32) int32 {
	place, added := s.strings.use(i)
	if added {
		s.to.StringTable().Append(s.dict.StringTable().At(int(i)))
	}
	return place
}

func (s *splitter) attribute(i int32) int32 {
	place, added := s.attributes.use(i)
	if added {
		a := s.to.AttributeTable().AppendEmpty()
		s.dict.AttributeTable().At(int(i)).CopyTo(a)
		a.SetKeyStrindex(s.text(a.KeyStrindex()))
		a.SetUnitStrindex(s.text(a.UnitStrindex()))
	}
	return place
}

func (s *splitter) function(i int32) int32 {
	place, added := s.functions.use(i)
	if added {
		f := s.to.FunctionTable().AppendEmpty()
		s.dict.FunctionTable().At(int(i)).CopyTo(f)
		f.SetNameStrindex(s.text(f.NameStrindex()))
		f.SetSystemNameStrindex(s.text(f.SystemNameStrindex()))
		f.SetFilenameStrindex(s.text(f.FilenameStrindex()))
	}
	return place
}

func (s *splitter) mapping(i int32) int32 {
	place, added := s.mappings.use(i)
	if added {
		m := s.to.MappingTable().AppendEmpty()
		s.dict.MappingTable().At(int(i)).CopyTo(m)
		m.SetFilenameStrindex(s.text(m.FilenameStrindex()))
		s.attributeIndices(m.AttributeIndices())
	}
	return place
}

func (s *splitter) location(i int32) int32 {
	place, added := s.locations.use(i)
	if added {
		l := s.to.LocationTable().AppendEmpty()
		s.dict.LocationTable().At(int(i)).CopyTo(l)
		l.SetMappingIndex(s.mapping(l.MappingIndex()))
		for _, line := range l.Lines().All() {
			line.SetFunctionIndex(s.function(line.FunctionIndex()))
		}
		s.attributeIndices(l.AttributeIndices())
	}
	return place
}

func (s *splitter) stack(i int32) int32 {
	place, added := s.stacks.use(i)
	if added {
		stack := s.to.StackTable().AppendEmpty()
		s.dict.StackTable().At(int(i)).CopyTo(stack)
		indices := stack.LocationIndices()
		for j := range indices.Len() {
			indices.SetAt(j, s.location(indices.At(j)))
		}
	}
	return place
}

func (s *splitter) link(i int32) int32 {
	place, added := s.links.use(i)
	if added {
		s.dict.LinkTable().At(int(i)).CopyTo(s.to.LinkTable().AppendEmpty())
	}
	return place
}
