// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Splitter copies resources out of a payload. Each copy has a dictionary of its own,
// with what it refers to, in order of first use. The payload must have passed Check; it
// is only read.
type Splitter struct {
	from   pprofile.Profiles
	tables *Tables
	remap  Remap
}

// NewSplitter returns a Splitter of pd.
func NewSplitter(pd pprofile.Profiles) *Splitter {
	s := &Splitter{from: pd, tables: New(0)}
	s.remap.keepPartialLinks = true
	return s
}

// Take returns a copy of the resources with the given indices. The time it takes
// depends on what they refer to, not on the size of the payload.
func (s *Splitter) Take(resources []int) pprofile.Profiles {
	taken := pprofile.NewProfiles()
	s.tables.WriteTo(taken.Dictionary())
	s.remap.Reset(s.from.Dictionary(), s.tables)
	taken.ResourceProfiles().EnsureCapacity(len(resources))
	for _, i := range resources {
		rp := taken.ResourceProfiles().AppendEmpty()
		s.from.ResourceProfiles().At(i).CopyTo(rp)
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				s.remap.profile(p)
			}
		}
	}
	s.tables.WriteStrings()
	s.tables.Release()
	return taken
}

// profile replaces the indices in p.
func (r *Remap) profile(p pprofile.Profile) {
	r.valueType(p.SampleType())
	r.valueType(p.PeriodType())
	r.attributeIndices(p.AttributeIndices())
	for _, sample := range p.Samples().All() {
		sample.SetStackIndex(r.Stack(sample.StackIndex()))
		sample.SetLinkIndex(r.Link(sample.LinkIndex()))
		r.attributeIndices(sample.AttributeIndices())
	}
}

func (r *Remap) valueType(t pprofile.ValueType) {
	t.SetTypeStrindex(r.String(t.TypeStrindex()))
	t.SetUnitStrindex(r.String(t.UnitStrindex()))
}

func (r *Remap) attributeIndices(indices pcommon.Int32Slice) {
	for i := range indices.Len() {
		indices.SetAt(i, r.Attribute(indices.At(i)))
	}
}
