// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator/internal/fromotlp"
)

// write makes the OTLP profiles.
func (d *decoder) write(pd pprofile.Profiles) {
	rp := pd.ResourceProfiles().AppendEmpty()
	if name := d.executableName(); name != "" {
		rp.Resource().Attributes().PutStr(fromotlp.ExecutableName, name)
	}
	sp := rp.ScopeProfiles().AppendEmpty()
	order := d.typeOrder()
	hasEvents := len(d.events.rows) > 0
	onlyEvents := hasEvents && len(d.matrix.values) == 0
	profiles := order
	if hasEvents && !onlyEvents {
		profiles = slices.Repeat(order, 2)
	}
	sampletypes.WriteOrder(sp.Scope().Attributes(), profiles)
	if name := d.text(profileDefaultSampleType); len(name) > 0 {
		sp.Scope().Attributes().PutStr(sampletypes.DefaultAttribute, string(d.tables.Valid(name)))
	}
	d.writeProfiles(sp.Profiles(), profiles)
	omitZeros := d.omitsZeros()
	for i, p := range sp.Profiles().All() {
		if onlyEvents || i >= len(order) {
			d.writeEvents(p.Samples(), profiles[i])
		} else {
			d.writeMatrix(p.Samples(), profiles[i], order[0], omitZeros)
		}
	}
	d.tables.Write(pd.Dictionary())
}

// typeOrder returns the sample types in the order of their Profiles: the default type
// first. Without a default that is the last type, as in pprof.
func (d *decoder) typeOrder() []int {
	types := d.header.sampleTypes
	if len(types) == 0 {
		return nil
	}
	first := len(types) - 1
	if name := d.text(profileDefaultSampleType); len(name) > 0 {
		if i := slices.IndexFunc(types, func(t valueType) bool { return bytes.Equal(d.bytes(t.typ), name) }); i >= 0 {
			first = i
		}
	}
	order := append(make([]int, 0, len(types)), first)
	for i := range types {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

// text returns the string that a field of the Profile message refers to.
func (d *decoder) text(field int) []byte { return d.bytes(d.header.integers[field]) }

// executableName returns the base name of the main binary: of the first mapping that may be
// that of a program, as in pprof.
func (d *decoder) executableName() string {
	for _, m := range d.mappings.contents {
		if file := d.bytes(uint64(m.file)); fromotlp.IsProgram(file) {
			return string(d.tables.Valid([]byte(fromotlp.BaseName(string(file)))))
		}
	}
	return ""
}

// writeProfiles writes Profiles without samples, of the sample types order.
func (d *decoder) writeProfiles(profiles pprofile.ProfilesSlice, order []int) {
	profiles.EnsureCapacity(len(order))
	for i, typ := range order {
		p := profiles.AppendEmpty()
		if i == 0 {
			d.writeHeader(p, order)
		} else {
			profiles.At(0).CopyTo(p)
		}
		d.setType(p.SampleType(), d.header.sampleTypes[typ])
	}
}

// writeHeader writes everything that the Profiles of a pprof share.
func (d *decoder) writeHeader(p pprofile.Profile, order []int) {
	h := &d.header
	p.SetTime(pcommon.Timestamp(d.clamp(h.integers[profileTimeNanos])))
	p.SetDurationNano(d.clamp(h.integers[profileDurationNanos]))
	p.SetPeriod(int64(h.integers[profilePeriod]))
	d.setType(p.PeriodType(), h.periodType)
	for _, i := range order { // in the dictionary, all sample types come before the attributes
		d.setType(p.SampleType(), h.sampleTypes[i])
	}
	d.attribute = d.attribute[:0]
	if len(h.comments) > 0 {
		v := d.value[:0].AppendArray(len(h.comments))
		for _, c := range h.comments {
			v = v.AppendString(d.tables.Valid(d.bytes(c)))
		}
		d.value = v
		d.attribute = append(d.attribute, d.tables.Attribute(d.tables.String(fromotlp.ProfileComment), 0, v))
	}
	for _, f := range []struct {
		key   string
		field int
	}{
		{fromotlp.ProfileDropFrames, profileDropFrames},
		{fromotlp.ProfileKeepFrames, profileKeepFrames},
		{fromotlp.ProfileDocURL, profileDocURL},
	} {
		if text := d.tables.Valid(d.text(f.field)); len(text) > 0 {
			d.attribute = append(d.attribute, d.stringAttribute(f.key, text))
		}
	}
	if len(d.attribute) > 0 {
		p.AttributeIndices().FromRaw(d.attribute)
	}
}

func (d *decoder) setType(to pprofile.ValueType, t valueType) {
	to.SetTypeStrindex(d.stringIndex(t.typ))
	to.SetUnitStrindex(d.stringIndex(t.unit))
}

// clamp returns 0 for a negative time or duration, which means unknown.
func (d *decoder) clamp(v uint64) uint64 {
	if int64(v) < 0 {
		d.negative++
		return 0
	}
	return v
}

// writeIdentity sets the fields that a sample shares with those of other sample types.
func (d *decoder) writeIdentity(s pprofile.Sample, identities *dictionary.Samples, row int) {
	stack, set, link := identities.Identity(int32(row))
	s.SetStackIndex(stack)
	s.SetLinkIndex(link)
	if set != 0 {
		s.AttributeIndices().FromRaw(d.tables.Set(set))
	}
}

// writeMatrix writes the values of one sample type. If zeros are omitted, an identity
// with zeros alone keeps that of the first type.
func (d *decoder) writeMatrix(samples pprofile.SampleSlice, typ, first int, omitZeros bool) {
	m, types := &d.matrix, len(d.header.sampleTypes)
	if !omitZeros {
		samples.EnsureCapacity(m.identities.Len())
	}
	for row := range m.identities.Len() {
		values := m.values[row*types:][:types]
		if omitZeros && values[typ] == 0 && (typ != first || slices.ContainsFunc(values, func(v uint64) bool { return v != 0 })) {
			continue
		}
		s := samples.AppendEmpty()
		d.writeIdentity(s, &m.identities, row)
		to := s.Values()
		to.EnsureCapacity(1) // faster than growing
		to.Append(int64(values[typ]))
	}
}

func (d *decoder) writeEvents(samples pprofile.SampleSlice, typ int) {
	l, types := &d.events, len(d.header.sampleTypes)
	samples.EnsureCapacity(l.identities.Len())
	for row := range l.identities.Len() {
		s := samples.AppendEmpty()
		d.writeIdentity(s, &l.identities, row)
		s.Values().EnsureCapacity(int(l.counts[row]))
		s.TimestampsUnixNano().EnsureCapacity(int(l.counts[row]))
	}
	for event, row := range l.rows {
		s := samples.At(int(row))
		s.Values().Append(l.values[event*types+typ])
		s.TimestampsUnixNano().Append(l.times[event])
	}
}
