// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// family is what a sample counts. The samples of a family share one or two sample types.
type family uint8

const (
	familyCPU     family = iota
	familyCPUTime        // with a period of its own in each sample
	familySamples        // of the JDK, which are no time
	familyWall
	familyInNewTLAB
	familyOutsideTLAB
	familyAllocation
	familyLive
	familyMutex
	familyBlock
	familyNative
	families
)

// valueType is a sample type.
type valueType struct{ name, unit string }

var (
	samplesCount = valueType{"samples", "count"}
	contentions  = valueType{"contentions", "count"}
	delay        = valueType{"delay", "nanoseconds"}
)

// familyTypes are the profile.type of each family and its sample types.
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
}

// Attributes of scopes and Profiles.
const (
	attributeProfileType = "profile.type"
	attributeTemporality = "profile.temporality"
	temporalityDelta     = "delta"
	temporalityInstant   = "instant"
)

// accumulator has the samples of a family.
type accumulator struct {
	samples dictionary.Samples
	values  [][2]int64   // by number in samples, without timestamps
	timed   []timedValue // with timestamps
}

type timedValue struct {
	row    int32
	time   uint64
	values [2]int64
}

// Sizes in pdata, in bytes: of a sample with its only value and the pointer to it, of a
// timestamp and its value, and of a Profile.
const (
	sampleSize  = 112
	eventSize   = 16
	profileSize = 384
)

// add adds the values of a sample to those of its row.
func (a *accumulator) add(d *decoder, row int32, start uint64, first, second int64, timed bool) (err error) {
	if int(row) >= len(a.values) {
		if a.values, err = jfr.Room(&d.Memory, a.values, 1); err != nil {
			return err
		}
		a.values = append(a.values, [2]int64{})
		d.sampleBytes += 2 * (sampleSize + rowSize)
	}
	if timed {
		if a.timed, err = jfr.Room(&d.Memory, a.timed, 1); err != nil {
			return err
		}
		a.timed = append(a.timed, timedValue{row, start, [2]int64{first, second}})
		d.sampleBytes += 2 * eventSize
		return nil
	}
	v := &a.values[row]
	if first > math.MaxInt64-v[0] || second > math.MaxInt64-v[1] {
		return errOverflow
	}
	v[0] += first
	v[1] += second
	return nil
}

const errOverflow = errString("the sum of the values of equal samples is more than int64 holds")

// rowSize is about what an accumulator takes for a sample beyond its values, in bytes.
const rowSize = 32

// writeChunk writes the samples of the chunk: a ScopeProfiles for each family.
func (d *decoder) writeChunk(to pprofile.ScopeProfilesSlice) error {
	for of := range families {
		a := &d.families[of]
		if a.samples.Len() == 0 {
			continue
		}
		period, types := d.period(of), familyTypes[of].types[:]
		if types[1].name == "" || (of == familyCPU || of == familyWall) && period == 0 {
			types = types[:1]
		}
		sp := to.AppendEmpty()
		sp.Scope().Attributes().PutStr(attributeProfileType, familyTypes[of].profileType)
		sampletypes.WriteOrder(sp.Scope().Attributes(), []int{0, 1}[:len(types)])
		sp.Profiles().EnsureCapacity(len(types))
		for i, t := range types {
			p := sp.Profiles().AppendEmpty()
			d.writeType(p.SampleType(), t)
			d.writeHeader(p, of, period)
			if period > 0 && i == 1 {
				if err := a.multiply(period); err != nil {
					return fmt.Errorf("chunk %d: %w", d.Chunk, err)
				}
			}
			d.writeSamples(p.Samples(), a, i)
		}
	}
	return nil
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
	temporality := temporalityDelta
	if of == familyLive {
		temporality = temporalityInstant
	}
	p.AttributeIndices().Append(d.stringAttribute(d.tables.String(attributeTemporality), []byte(temporality)))
}

// multiply sets the second value of each sample to the first one times period.
func (a *accumulator) multiply(period int64) error {
	times := func(v *[2]int64) bool {
		v[1] = jfr.Scale(v[0], period, 1)
		return v[1] != math.MaxInt64
	}
	for i := range a.values {
		if !times(&a.values[i]) {
			return errOverflow
		}
	}
	for i := range a.timed {
		if !times(&a.timed[i].values) {
			return errOverflow
		}
	}
	return nil
}

// writeSamples writes one value of each sample.
func (d *decoder) writeSamples(to pprofile.SampleSlice, a *accumulator, value int) {
	to.EnsureCapacity(a.samples.Len())
	for row := range a.samples.Len() {
		stack, set, link := a.samples.Identity(int32(row))
		s := to.AppendEmpty()
		s.SetStackIndex(stack)
		s.SetLinkIndex(link)
		if set != 0 {
			d.attributes = d.tables.AppendSet(d.attributes[:0], set)
			s.AttributeIndices().FromRaw(d.attributes)
		}
		if len(a.timed) == 0 {
			s.Values().Append(a.values[row][value])
		}
	}
	for _, e := range a.timed {
		s := to.At(int(e.row))
		s.Values().Append(e.values[value])
		s.TimestampsUnixNano().Append(e.time)
	}
}

func (a *accumulator) reset() {
	a.samples.Reset()
	a.values, a.timed = a.values[:0], a.timed[:0]
}
