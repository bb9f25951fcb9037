// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator

import (
	"encoding/binary"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
)

// sample is what intervals of one OTLP sample have in common, by numbers of a follower.
type sample struct {
	goroutine  trace.GoID
	state      int8
	reason     int32
	annotation int32
	stack      int32
}

// interval is one state of a goroutine.
type interval struct {
	sample   int32 // index in the samples of the slice
	start    trace.Time
	duration int64
}

// slice has the intervals of a part of a trace.
type slice struct {
	samples   interned[sample]
	counts    []int32 // of intervals, by sample
	intervals []interval
}

// has reports whether a number is that of a sample in the slice.
func (s *slice) has(number int32, of sample) bool {
	return int(number) < len(s.samples.list) && s.samples.list[number] == of
}

// number returns the number of a sample.
func (s *slice) number(of sample) int32 {
	number := s.samples.of(of)
	if int(number) == len(s.counts) {
		s.counts = append(s.counts, 0)
	}
	return number
}

// add adds an interval of the sample of a number.
func (s *slice) add(number int32, start, end trace.Time) {
	s.counts[number]++
	s.intervals = append(s.intervals, interval{number, start, int64(end - start)})
}

func (s *slice) reset() {
	clear(s.samples.number)
	s.samples.list, s.counts, s.intervals = s.samples.list[:0], s.counts[:0], s.intervals[:0]
}

// held is about how much memory s takes, in bytes.
func (s *slice) held() int {
	const ofSample, ofInterval = 112, 24
	return ofSample*cap(s.counts) + ofInterval*cap(s.intervals)
}

// output is the result of a translation: one dictionary for all slices.
type output struct {
	profiles pprofile.Profiles
	scopes   pprofile.ScopeProfilesSlice
	tables   *dictionary.Tables

	// Indices in the tables by numbers of the follower, 0 if there is none yet.
	stacks, locations []int32

	intervals, samples, parts int

	// identities are those of the samples of the current slice, and numbers their numbers by that of the follower.
	identities dictionary.Samples
	numbers    []int32

	indices    []int32
	attributes []int32
	lines      []dictionary.Line
	value      dictionary.Value
}

// Sizes in pdata, in bytes: of a sample with its attributes and the pointer to it, of a timestamp and its value, and of a Profile with its
// scope.
const (
	sampleSize   = 160
	intervalSize = 16
	profileSize  = 640
)

func newOutput() *output {
	o := &output{profiles: pprofile.NewProfiles(), tables: dictionary.New()}
	o.scopes = o.profiles.ResourceProfiles().AppendEmpty().ScopeProfiles()
	return o
}

// size is about the memory of the result so far, in bytes.
func (o *output) size() int {
	size := sampleSize*o.samples + intervalSize*o.intervals + profileSize*o.parts + o.tables.OutputSize()
	return size + size/8 + o.tables.StringsOutputSize()
}

// attribute interns an attribute with a text.
func (o *output) attribute(key, text string) int32 {
	return o.tables.Attribute(o.tables.String(key), 0, o.value[:0].AppendString(o.tables.Valid([]byte(text))))
}

// add adds a Profile with the slice of a follower, which starts at a time of the day.
func (o *output) add(f *follower, start time.Time) {
	s := &f.slice
	o.parts++
	o.samples += len(s.counts)
	o.intervals += len(s.intervals)
	scope := o.scopes.AppendEmpty()
	scope.Scope().Attributes().PutStr(attrkey.ProfileType, SampleType)
	sampletypes.WriteOrder(scope.Scope().Attributes(), []int{0})
	p := scope.Profiles().AppendEmpty()
	p.SampleType().SetTypeStrindex(o.tables.String(SampleType))
	p.SampleType().SetUnitStrindex(o.tables.String(Unit))
	p.SetTime(pcommon.NewTimestampFromTime(start))
	p.SetDurationNano(uint64(f.now - f.began))
	p.AttributeIndices().Append(o.attribute(attrkey.Temporality, sampletypes.Delta))
	o.addSamples(f, p.Samples())
	zero := uint64(start.UnixNano()) - uint64(f.began)
	for _, interval := range s.intervals {
		to := p.Samples().At(int(o.numbers[interval.sample]))
		to.Values().Append(interval.duration)
		to.TimestampsUnixNano().Append(zero + uint64(interval.start))
	}
}

// addSamples adds the samples of the slice, without their intervals. Those whose texts differ only in what was repaired are one.
func (o *output) addSamples(f *follower, to pprofile.SampleSlice) {
	s := &f.slice
	o.identities.Reset()
	o.numbers = o.numbers[:0]
	to.EnsureCapacity(len(s.counts))
	for i, of := range s.samples.list {
		stack, attributes, link := o.stack(&f.stacks, of.stack), o.attributesOf(f, of), int32(0)
		if known := f.annotations.list[of.annotation]; known.traceID != [16]byte{} {
			link = o.tables.Link(known.traceID, known.spanID)
		}
		number := o.identities.Number(stack, o.tables.AttributeSet(attributes), link)
		o.numbers = append(o.numbers, number)
		if int(number) < to.Len() {
			continue
		}
		sample := to.AppendEmpty()
		sample.SetStackIndex(stack)
		sample.SetLinkIndex(link)
		sample.AttributeIndices().FromRaw(attributes)
		sample.Values().EnsureCapacity(int(s.counts[i]))
		sample.TimestampsUnixNano().EnsureCapacity(int(s.counts[i]))
	}
}

// attributesOf returns the indices of the attributes of a sample, valid until the next call.
func (o *output) attributesOf(f *follower, of sample) []int32 {
	id := o.tables.Attribute(o.tables.String(timing.GoroutineIDAttribute), 0, o.value[:0].AppendInt(int64(of.goroutine)))
	o.attributes = append(o.attributes[:0], id, o.attribute(timing.StateAttribute, stateNames[of.state]), o.attribute(timing.TimestampMarksAttribute, timing.MarksStart))
	if of.reason != noReason {
		o.attributes = append(o.attributes, o.attribute(timing.ReasonAttribute, f.reasons.list[of.reason]))
	}
	known := f.annotations.list[of.annotation]
	if known.task != "" {
		o.attributes = append(o.attributes, o.attribute(timing.TaskAttribute, known.task))
	}
	if known.region != "" {
		o.attributes = append(o.attributes, o.attribute(timing.RegionAttribute, known.region))
	}
	if known.spanID != [8]byte{} && known.traceID == [16]byte{} { // as Datadog's pprofs name it
		id := o.value[:0].AppendInt(int64(binary.BigEndian.Uint64(known.spanID[:])))
		o.attributes = append(o.attributes, o.tables.Attribute(o.tables.String("span id"), 0, id))
	}
	return o.attributes
}

// stack returns the index of a stack in the tables.
func (o *output) stack(s *stacks, number int32) int32 {
	if number == 0 {
		return 0
	}
	index := at(&o.stacks, number)
	if *index == 0 {
		o.indices = o.indices[:0]
		for _, f := range s.entries[number].frames {
			o.indices = append(o.indices, o.location(s, f))
		}
		*index = o.tables.Stack(o.indices)
	}
	return *index
}

func (o *output) location(s *stacks, number int32) int32 {
	index := at(&o.locations, number)
	if *index == 0 {
		f := s.frames[number]
		function := o.tables.Function(dictionary.Function{Name: o.tables.String(f.function), Filename: o.tables.String(f.file)})
		o.lines = append(o.lines[:0], dictionary.Line{Function: function, Line: int64(f.line)})
		*index = o.tables.Location(&dictionary.Location{Lines: o.lines, Attributes: []int32{o.attribute(string(semconv.ProfileFrameTypeKey), "go")}})
	}
	return *index
}

// at returns the element of a number, which it adds if need be.
func at(list *[]int32, number int32) *int32 {
	if missing := int(number) + 1 - len(*list); missing > 0 {
		*list = append(*list, make([]int32, missing)...)
	}
	return &(*list)[number]
}
