// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"fmt"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// family is the quantity that a sample counts. The samples of a family share one or two sample types.
type family uint8

const (
	familyCPU     family = iota
	familyCPUTime        // with a period of its own in each sample
	familySamples        // of the JDK's sampler, which takes a few threads a tick: not CPU time
	familyWall
	familyInNewTLAB
	familyOutsideTLAB
	familyAllocation
	familyLive
	familyMutex
	familyBlock
	familyNative
	familyOffCPU
	families
	familyAsync    // familyCPU or familyWall
	familySettings // no samples
)

// valueType is a sample type.
type valueType struct{ name, unit string }

var (
	samplesCount = valueType{"samples", "count"}
	contentions  = valueType{"contentions", "count"}
	delay        = valueType{"delay", "nanoseconds"}
)

// familyTypes are the otelcol_profiles.type of each family and its sample types.
var familyTypes = [families]struct {
	profileType string
	types       [2]valueType
}{
	familyCPU:         {"cpu", [2]valueType{samplesCount, {"cpu", "nanoseconds"}}},
	familyCPUTime:     {"cpu", [2]valueType{samplesCount, {"cpu", "nanoseconds"}}},
	familySamples:     {"cpu", [2]valueType{samplesCount, {}}},
	familyWall:        {"wall", [2]valueType{samplesCount, {"wall", "nanoseconds"}}},
	familyInNewTLAB:   {"alloc", [2]valueType{{"alloc_in_new_tlab_objects", "count"}, {"alloc_in_new_tlab_bytes", "bytes"}}},
	familyOutsideTLAB: {"alloc", [2]valueType{{"alloc_outside_tlab_objects", "count"}, {"alloc_outside_tlab_bytes", "bytes"}}},
	familyAllocation:  {"alloc", [2]valueType{{"alloc_sample_objects", "count"}, {"alloc_sample_bytes", "bytes"}}},
	familyLive:        {"live", [2]valueType{{"live_objects", "count"}, {"live_bytes", "bytes"}}},
	familyMutex:       {"mutex", [2]valueType{contentions, delay}},
	familyBlock:       {"block", [2]valueType{contentions, delay}},
	familyNative:      {"native", [2]valueType{{"malloc_objects", "count"}, {"malloc_bytes", "bytes"}}},
	familyOffCPU:      {"off_cpu", [2]valueType{{"events", "count"}, {"off_cpu", "nanoseconds"}}},
}

// accumulator has the samples of a family.
type accumulator struct {
	samples dictionary.Samples
	values  [][2]int64 // by number in samples
}

// Sizes in pdata, in bytes: of a sample with its only value and the pointer to it, of a
// timestamp and its value, and of a Profile. rowSize is about the memory of an accumulator for a
// sample beyond its values.
const (
	sampleSize  = 112
	eventSize   = 16
	profileSize = 384
	rowSize     = 32
)

// writeChunk writes the samples of the chunk: a ScopeProfiles for each family that has some, or that is recorded.
func (d *decoder) writeChunk(to pprofile.ScopeProfilesSlice) {
	for of := range families {
		if d.families[of].samples.Len() > 0 {
			d.settings.recorded[of] = true
		} else if !d.declares(of) || !d.settings.recorded[of] && !d.settings.records(of) {
			continue
		} else {
			d.sampleBytes += 2 * (profileSize + rowSize) // of each chunk
			if d.check(0); d.Err != nil {
				return
			}
		}
		period, types := d.settings.period(of, d.datadog, d.options.SampleRate), familyTypes[of].types[:]
		if types[1].name == "" || (of == familyCPU || of == familyWall) && period == 0 {
			types = types[:1]
		}
		sp := to.AppendEmpty()
		sp.Scope().Attributes().PutStr(attrkey.ProfileType, familyTypes[of].profileType)
		sampletypes.WriteOrder(sp.Scope().Attributes(), []int{0, 1}[:len(types)])
		sp.Profiles().EnsureCapacity(len(types))
		for i, t := range types {
			p := sp.Profiles().AppendEmpty()
			d.writeType(p.SampleType(), t)
			d.writeHeader(p, of, period)
			d.writeSamples(p.Samples(), of, i, period)
		}
	}
}

// declares reports whether the metadata of the chunk have events of a family.
func (d *decoder) declares(of family) bool {
	return slices.ContainsFunc(d.events, func(e *event) bool {
		return e != nil && (e.family == of || e.family == familyAsync && (of == familyCPU || of == familyWall))
	})
}

func (d *decoder) writeType(to pprofile.ValueType, t valueType) {
	to.SetTypeStrindex(d.tables.String(t.name))
	to.SetUnitStrindex(d.tables.String(t.unit))
}

func (d *decoder) writeHeader(p pprofile.Profile, of family, period int64) {
	p.SetTime(pcommon.Timestamp(max(d.Header.Start, 0)))
	duration := uint64(max(d.Header.Duration, 0))
	if start := uint64(p.Time()); d.Header.Unfinished && d.last > start {
		duration = max(duration, d.last-start+1)
	}
	p.SetDurationNano(duration)
	if period > 0 {
		p.SetPeriod(period)
		d.writeType(p.PeriodType(), familyTypes[of].types[1])
	}
	value := sampletypes.Delta
	if of == familyLive {
		value = sampletypes.Instant
	}
	p.AttributeIndices().Append(d.stringAttribute(d.tables.String(attrkey.Temporality), []byte(value)))
}

// writeSamples writes value i of each sample. That is the period for each sample counted, if there is one.
func (d *decoder) writeSamples(to pprofile.SampleSlice, of family, i int, period int64) {
	value := func(v *[2]int64) int64 {
		if i == 0 || period == 0 {
			return v[i]
		}
		product := jfr.Scale(v[0], period, 1)
		if product == math.MaxInt64 && d.Err == nil {
			d.Err = fmt.Errorf("chunk %d: %w", d.Chunk, errOverflow)
		}
		return product
	}
	a := &d.families[of]
	to.EnsureCapacity(a.samples.Len())
	for number := range a.values {
		stack, set, link := a.samples.Identity(int32(number))
		s := to.AppendEmpty()
		s.SetStackIndex(stack)
		s.SetLinkIndex(link)
		if set != 0 {
			d.attributes = d.tables.AppendSet(d.attributes[:0], set)
			s.AttributeIndices().FromRaw(d.attributes)
		}
		if !d.options.Timestamps || of == familyLive {
			s.Values().Append(value(&a.values[number]))
		}
	}
	for j := range d.timedValues {
		t := &d.timedValues[j]
		if r := &d.rows[t.row]; r.family == of {
			s := to.At(int(r.number))
			s.Values().Append(value(&t.values))
			s.TimestampsUnixNano().Append(t.time)
		}
	}
}
