// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Splitter copies resources out of a payload. Each copy has a dictionary of its own,
// with the entries it refers to, in order of first use. The payload must have passed Check, and have no
// string references in its attribute table; it is only read.
type Splitter struct {
	from   pprofile.Profiles
	tables *Tables
	remap  Remap
}

// NewSplitter returns a Splitter of pd.
func NewSplitter(pd pprofile.Profiles) *Splitter {
	s := &Splitter{from: pd, tables: New()}
	s.remap.KeepPartialLinks = true
	return s
}

// Part is a resource of a payload with some of its scopes, by their indices; nil stands for all.
type Part struct {
	Resource int
	Scopes   []int
}

// Take returns a copy of parts of the payload. The time it takes depends on the entries they refer to, not
// on the size of the payload.
func (s *Splitter) Take(parts []Part) pprofile.Profiles {
	taken := pprofile.NewProfiles()
	s.tables.Reset()
	s.remap.Reset(s.from.Dictionary(), s.tables)
	taken.ResourceProfiles().EnsureCapacity(len(parts))
	for _, part := range parts {
		rp := taken.ResourceProfiles().AppendEmpty()
		part.copyTo(rp, s.from.ResourceProfiles().At(part.Resource))
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				s.profile(p)
			}
		}
	}
	s.tables.Write(taken.Dictionary())
	return taken
}

func (p *Part) copyTo(to, from pprofile.ResourceProfiles) {
	if p.Scopes == nil {
		from.CopyTo(to)
		return
	}
	from.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(from.SchemaUrl())
	for _, i := range p.Scopes {
		from.ScopeProfiles().At(i).CopyTo(to.ScopeProfiles().AppendEmpty())
	}
}

// profile replaces the indices in p.
func (s *Splitter) profile(p pprofile.Profile) {
	s.valueType(p.SampleType())
	s.valueType(p.PeriodType())
	s.attributeIndices(p.AttributeIndices())
	for _, sample := range p.Samples().All() {
		sample.SetStackIndex(s.remap.Stack(sample.StackIndex()))
		sample.SetLinkIndex(s.remap.Link(sample.LinkIndex()))
		s.attributeIndices(sample.AttributeIndices())
	}
}

func (s *Splitter) valueType(t pprofile.ValueType) {
	t.SetTypeStrindex(s.remap.String(t.TypeStrindex()))
	t.SetUnitStrindex(s.remap.String(t.UnitStrindex()))
}

func (s *Splitter) attributeIndices(indices pcommon.Int32Slice) {
	for i := range indices.Len() {
		indices.SetAt(i, s.remap.Attribute(indices.At(i)))
	}
}
