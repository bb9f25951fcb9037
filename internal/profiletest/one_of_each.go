// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// OneOfEach returns a payload in which each index field leads somewhere.
func OneOfEach() pprofile.Profiles {
	pd := pprofile.NewProfiles()
	d := pd.Dictionary()
	d.StringTable().Append("", "one")
	m := d.MappingTable()
	m.AppendEmpty()
	d.AttributeTable().AppendEmpty()
	a := d.AttributeTable().AppendEmpty()
	a.SetKeyStrindex(1)
	a.SetUnitStrindex(1)
	mapping := m.AppendEmpty()
	mapping.SetFilenameStrindex(1)
	mapping.AttributeIndices().Append(1)
	d.FunctionTable().AppendEmpty()
	f := d.FunctionTable().AppendEmpty()
	f.SetNameStrindex(1)
	f.SetSystemNameStrindex(1)
	f.SetFilenameStrindex(1)
	d.LocationTable().AppendEmpty()
	l := d.LocationTable().AppendEmpty()
	l.SetMappingIndex(1)
	l.Lines().AppendEmpty().SetFunctionIndex(1)
	l.AttributeIndices().Append(1)
	d.LinkTable().AppendEmpty()
	d.LinkTable().AppendEmpty().SetTraceID(pcommon.TraceID{1})
	d.StackTable().AppendEmpty()
	d.StackTable().AppendEmpty().LocationIndices().Append(1)
	p := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(1)
	p.SampleType().SetUnitStrindex(1)
	p.PeriodType().SetTypeStrindex(1)
	p.PeriodType().SetUnitStrindex(1)
	p.AttributeIndices().Append(1)
	s := p.Samples().AppendEmpty()
	s.SetStackIndex(1)
	s.SetLinkIndex(1)
	s.AttributeIndices().Append(1)
	s.Values().Append(1)
	return pd
}
