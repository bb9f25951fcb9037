// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// translator replaces the indices of Profiles by those of tables.
type translator struct {
	tables *Tables
	remap  Remap
}

func newTranslator() translator {
	return translator{New(), Remap{KeepPartialLinks: true}}
}

// Splitter copies resources out of a payload. Each copy has a dictionary of its own,
// with the entries it refers to, in order of first use. The payload must have passed Check, and have no
// string references in its attribute table; it is only read.
type Splitter struct {
	translator

	from pprofile.Profiles
}

// NewSplitter returns a Splitter of pd.
func NewSplitter(pd pprofile.Profiles) *Splitter {
	return &Splitter{newTranslator(), pd}
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
		s.resource(rp)
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

func (t *translator) resource(rp pprofile.ResourceProfiles) {
	for _, sp := range rp.ScopeProfiles().All() {
		for _, p := range sp.Profiles().All() {
			t.profile(p)
		}
	}
}

func (t *translator) profile(p pprofile.Profile) {
	t.valueType(p.SampleType())
	t.valueType(p.PeriodType())
	t.attributeIndices(p.AttributeIndices())
	for _, sample := range p.Samples().All() {
		sample.SetStackIndex(t.remap.Stack(sample.StackIndex()))
		sample.SetLinkIndex(t.remap.Link(sample.LinkIndex()))
		t.attributeIndices(sample.AttributeIndices())
	}
}

func (t *translator) valueType(v pprofile.ValueType) {
	v.SetTypeStrindex(t.remap.String(v.TypeStrindex()))
	v.SetUnitStrindex(t.remap.String(v.UnitStrindex()))
}

func (t *translator) attributeIndices(indices pcommon.Int32Slice) {
	for i := range indices.Len() {
		indices.SetAt(i, t.remap.Attribute(indices.At(i)))
	}
}
