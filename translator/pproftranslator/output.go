// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// write makes the OTLP profiles of what has been decoded; the dictionary of pd
// already is there, but for its strings.
func (d *decoder) write(pd pprofile.Profiles) {
	rp := pd.ResourceProfiles().AppendEmpty()
	if name := d.executableName(); len(name) > 0 {
		rp.Resource().Attributes().PutStr(attrExecutableName, string(d.tables.Valid(name)))
	}
	sp := rp.ScopeProfiles().AppendEmpty()
	order := d.typeOrder()
	d.writeScope(sp.Scope().Attributes(), order)

	head := d.head(order)
	sheets := d.sheets
	if len(sheets) == 0 && len(d.timed.samples) == 0 {
		sheets = []sheet{{}}
	}
	profiles := sp.Profiles()
	profiles.EnsureCapacity((len(sheets) + 1) * len(order))
	omitZeros := d.omitsZeros()
	for _, s := range sheets {
		d.writeSheet(profiles, head, order, s, omitZeros)
	}
	if len(d.timed.samples) > 0 {
		d.writeTimeline(profiles, head, order)
	}
	d.tables.WriteStrings()
}

// typeOrder are the sample types in the order of their Profiles: the default
// type first. Without a default it is the last type, as in pprof.
func (d *decoder) typeOrder() []int {
	types := d.header.sampleTypes
	if len(types) == 0 {
		return nil
	}
	first := len(types) - 1
	if def := d.bytes(d.header.defaultType); len(def) > 0 {
		for i, t := range types {
			if bytes.Equal(d.bytes(t.typ), def) {
				first = i
				break
			}
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

func (d *decoder) writeScope(scope pcommon.Map, order []int) {
	if len(order) > 0 {
		s := scope.PutEmptySlice(attrScopeSampleTypeOrder)
		s.EnsureCapacity(len(order))
		for _, i := range order {
			s.AppendEmpty().SetInt(int64(i))
		}
	}
	if def := d.bytes(d.header.defaultType); len(def) > 0 {
		scope.PutStr(attrScopeDefaultSampleType, string(d.tables.Valid(def)))
	}
}

// executableName is the base name of the main binary: the first mapping with a
// file that is neither a shared library nor a pseudo file, as pprof takes it.
func (d *decoder) executableName() []byte {
	for number := range d.mappings.positions {
		m := d.mapping(int32(number))
		file := bytes.TrimSpace(bytes.ReplaceAll(d.bytes(m.filename), []byte("(deleted)"), nil))
		if len(file) == 0 || file[0] == '[' || isLibrary(file) {
			continue
		}
		return file[bytes.LastIndexAny(file, "/\\")+1:]
	}
	return nil
}

// isLibrary tells whether file ends in .so, or has .so. or .so_ and a digit, as a
// shared library does.
func isLibrary(file []byte) bool {
	if bytes.HasSuffix(file, []byte(".so")) {
		return true
	}
	for rest := string(file); ; {
		_, after, found := strings.Cut(rest, ".so")
		if !found {
			return false
		}
		if len(after) >= 2 && (after[0] == '.' || after[0] == '_') && after[1] >= '0' && after[1] <= '9' {
			return true
		}
		rest = after
	}
}

// profileHead is what the Profiles of one pprof have in common, but for the
// sample type.
type profileHead struct {
	time, duration       uint64
	period               int64
	periodType, periodIn int32
	types                [][2]int32 // by pprof sample type: type and unit
	attributes           []int32
}

func (d *decoder) head(order []int) profileHead {
	h := &d.header
	head := profileHead{
		time: d.clamp(h.time), duration: d.clamp(h.duration), period: h.period,
		periodType: d.stringIndex(h.periodType.typ), periodIn: d.stringIndex(h.periodType.unit),
		types: make([][2]int32, len(h.sampleTypes)),
	}
	for _, i := range order {
		t := h.sampleTypes[i]
		head.types[i] = [2]int32{d.stringIndex(t.typ), d.stringIndex(t.unit)}
	}
	if len(h.comments) > 0 {
		v := d.value[:0].AppendArray(len(h.comments))
		for _, c := range h.comments {
			v = v.AppendString(d.tables.Valid(d.bytes(int64(c))))
		}
		head.attributes = append(head.attributes, d.headAttribute(attrProfileComment, v))
	}
	for _, f := range []struct {
		key   string
		index int64
	}{
		{attrProfileDropFrames, h.dropFrames},
		{attrProfileKeepFrames, h.keepFrames},
		{attrProfileDocURL, h.docURL},
	} {
		if text := d.tables.Valid(d.bytes(f.index)); len(text) > 0 {
			head.attributes = append(head.attributes, d.headAttribute(f.key, d.value[:0].AppendString(text)))
		}
	}
	return head
}

func (d *decoder) headAttribute(key string, v dictionary.Value) int32 {
	d.value = v
	return d.tables.Attribute(d.tables.StringOf(key), 0, v)
}

// clamp takes times and durations that are negative for unknown.
func (d *decoder) clamp(v int64) uint64 {
	if v < 0 {
		d.clamped++
		return 0
	}
	return uint64(v)
}

func (head *profileHead) write(p pprofile.Profile, typ int) {
	p.SampleType().SetTypeStrindex(head.types[typ][0])
	p.SampleType().SetUnitStrindex(head.types[typ][1])
	p.PeriodType().SetTypeStrindex(head.periodType)
	p.PeriodType().SetUnitStrindex(head.periodIn)
	p.SetTime(pcommon.Timestamp(head.time))
	p.SetDurationNano(head.duration)
	p.SetPeriod(head.period)
	if len(head.attributes) > 0 {
		p.AttributeIndices().FromRaw(head.attributes)
	}
}

// writeIdentity sets what samples of all sample types have in common.
func (d *decoder) writeIdentity(s pprofile.Sample, sample int32) {
	stack, set, link := d.samples.Identity(sample)
	s.SetStackIndex(stack)
	s.SetLinkIndex(link)
	if set != 0 {
		d.attribute = d.tables.AppendSet(d.attribute[:0], set)
		s.AttributeIndices().FromRaw(d.attribute)
	}
}

func (d *decoder) writeSheet(profiles pprofile.ProfilesSlice, head profileHead, order []int, s sheet, omitZeros bool) {
	for _, typ := range order {
		p := profiles.AppendEmpty()
		head.write(p, typ)
		samples := p.Samples()
		if !omitZeros {
			samples.EnsureCapacity(len(s.samples))
		}
		for row, sample := range s.samples {
			values := s.values[row*len(order):][:len(order)]
			if omitZeros && values[typ] == 0 && (typ != order[0] || !isZero(values)) {
				continue
			}
			to := samples.AppendEmpty()
			d.writeIdentity(to, sample)
			to.Values().Append(values[typ])
		}
	}
}

func (d *decoder) writeTimeline(profiles pprofile.ProfilesSlice, head profileHead, order []int) {
	t := &d.timed
	for _, typ := range order {
		p := profiles.AppendEmpty()
		head.write(p, typ)
		samples := p.Samples()
		samples.EnsureCapacity(len(t.samples))
		for row, sample := range t.samples {
			to := samples.AppendEmpty()
			d.writeIdentity(to, sample)
			to.Values().EnsureCapacity(int(t.counts[row]))
			to.TimestampsUnixNano().EnsureCapacity(int(t.counts[row]))
		}
		for event, row := range t.events {
			to := samples.At(int(row))
			to.Values().Append(t.values[event*len(order)+typ])
			to.TimestampsUnixNano().Append(t.times[event])
		}
	}
}
