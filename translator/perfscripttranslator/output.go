// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// Sizes in bytes: of an event, of a point, and in pdata of a sample, of a timestamp with its value while slices grow,
// and of a Profile.
const (
	eventBytes    = 512
	pointSize     = 24
	sampleSize    = 112
	timestampSize = 32
	profileSize   = 512
)

// resultSize is about the memory of the result so far, in bytes.
func (d *decoder) resultSize() int {
	size := d.tables.OutputSize() + d.tables.StringsOutputSize()
	for _, e := range d.all() {
		one := profileSize + sampleSize*e.samples.Len() + timestampSize*len(e.points)
		size += one
		if e.period != nil {
			size += one
		}
	}
	return size
}

// write makes the OTLP profiles of the part.
func (d *decoder) write() pprofile.Profiles {
	pd := pprofile.NewProfiles()
	events := d.all()
	if len(events) > 0 {
		scopes := pd.ResourceProfiles().AppendEmpty().ScopeProfiles()
		for _, e := range events {
			d.writeEvent(scopes.AppendEmpty(), e)
		}
	}
	d.tables.Write(pd.Dictionary())
	d.report.InvalidStrings = d.tables.Repaired()
	d.report.Bytes = d.resultSize()
	return pd
}

func (d *decoder) writeEvent(sp pprofile.ScopeProfiles, e *event) {
	sp.Scope().Attributes().PutStr(attrkey.ProfileType, e.name)
	count := valueType{"samples", "count"}
	if e == d.offCPU {
		count.name = "events"
	}
	types := []valueType{count}
	if e.period != nil {
		types = append(types, *e.period)
	}
	sampletypes.WriteOrder(sp.Scope().Attributes(), []int{0, 1}[:len(types)])
	for i, t := range types {
		p := sp.Profiles().AppendEmpty()
		d.writeType(p.SampleType(), t)
		if e.constant > 0 {
			p.SetPeriod(e.constant)
			d.writeType(p.PeriodType(), *e.period)
		}
		start, end := d.clock.unix(d.first), d.clock.unix(d.latest+1)
		p.SetTime(pcommon.Timestamp(start))
		p.SetDurationNano(end - start)
		d.value = d.value[:0].AppendString([]byte(sampletypes.Delta))
		p.AttributeIndices().Append(d.tables.Attribute(d.tables.String(attrkey.Temporality), 0, d.value))
		d.writeSamples(p.Samples(), e, i == 0)
	}
}

func (d *decoder) writeType(to pprofile.ValueType, t valueType) {
	to.SetTypeStrindex(d.tables.String(t.name))
	to.SetUnitStrindex(d.tables.String(t.unit))
}

func (d *decoder) writeSamples(to pprofile.SampleSlice, e *event, counts bool) {
	to.EnsureCapacity(e.samples.Len())
	for row := range int32(e.samples.Len()) {
		stack, set, _ := e.samples.Identity(row)
		s := to.AppendEmpty()
		s.SetStackIndex(stack)
		d.attributes = d.tables.AppendSet(d.attributes[:0], set)
		s.AttributeIndices().FromRaw(d.attributes)
	}
	for _, p := range e.points {
		s, value := to.At(int(p.row)), p.value
		if counts {
			value = int64(p.count)
		}
		s.Values().Append(value)
		s.TimestampsUnixNano().Append(d.clock.unix(p.time))
	}
}
