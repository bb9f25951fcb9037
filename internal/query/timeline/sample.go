// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"math"
	"math/bits"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
)

// nanosecondsOf are the units of values that are time.
var nanosecondsOf = map[string]uint64{
	"nanoseconds": 1, "ns": 1, "microseconds": 1e3, "us": 1e3, "milliseconds": 1e6, "ms": 1e6, "seconds": 1e9, "s": 1e9,
}

// profile has what the samples of a Profile have in common.
type profile struct {
	payload  *payload
	resource pprofile.ResourceProfiles
	pprofile.Profile

	from, to uint64 // its edges; to is 0 if it has no duration
	unit     uint64 // nanoseconds of the value 1, 0 if values are no time
	period   uint64 // nanoseconds, 0 if it is no time
	state    State  // of samples that state none
	marks    string // of samples that state none
	// counted says that another Profile of the scope has the same samples with their time, such as cpu beside samples.
	counted bool
}

// sample is a sample with timestamps.
type sample struct {
	*profile
	pprofile.Sample

	timestamps pcommon.UInt64Slice
	values     pcommon.Int64Slice
	marks      string
	state      State
}

// payload has what the Profiles of a payload have in common.
type payload struct {
	dict       pprofile.ProfilesDictionary
	attributes []attribute // by index
}

// attribute is one that a timeline reads.
type attribute struct {
	role role
	text string
}

// role says what an attribute is for a timeline.
type role uint8

const (
	other role = iota
	roleState
	roleReason
	roleMarks
	roleGoroutine
	roleThread
	roleThreadName
	roleProcess
	roleProcessName
)

// roleOf are the roles of attributes, by the name that labels have: those of pprof have spaces or underscores.
var roleOf = map[string]role{
	timing.StateAttribute: roleState, timing.ReasonAttribute: roleReason, timing.TimestampMarksAttribute: roleMarks,
	timing.GoroutineIDAttribute: roleGoroutine,
	"thread.id":                 roleThread, "thread_id": roleThread, "thread id": roleThread,
	"thread.name": roleThreadName, "thread_name": roleThreadName, "thread name": roleThreadName,
	"process.pid": roleProcess, "process.executable.name": roleProcessName,
}

func newPayload(pd pprofile.Profiles) *payload {
	p := &payload{dict: pd.Dictionary()}
	p.attributes = make([]attribute, p.dict.AttributeTable().Len())
	for i, a := range p.dict.AttributeTable().All() {
		if role := roleOf[p.text(a.KeyStrindex())]; role != other && i > 0 {
			p.attributes[i] = attribute{role, a.Value().AsString()}
		}
	}
	return p
}

func (p *payload) text(i int32) string { return validText(p.dict, i) }

// validText returns a string of a dictionary as valid UTF-8.
func validText(dict pprofile.ProfilesDictionary, i int32) string {
	return dictionary.ValidString(dict.StringTable(), i)
}

// often is how many timestamps or samples are read before the context is looked at again.
const often = 1 << 14

// each calls visit with each sample with timestamps, which holds until visit returns. It returns the number of samples without any.
func each(ctx context.Context, pd pprofile.Profiles, visit func(*sample) error) (untimed int, err error) {
	err = eachSample(ctx, pd, func(s *sample) error {
		if s.timestamps.Len() == 0 {
			untimed++
			return nil
		}
		return visit(s)
	})
	return untimed, err
}

// eachSample calls visit with each sample, which holds until visit returns.
func eachSample(ctx context.Context, pd pprofile.Profiles, visit func(*sample) error) error {
	payload, done := newPayload(pd), 0
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, of := range payload.profiles(rp, sp) {
				s := sample{profile: of}
				for _, s.Sample = range of.Samples().All() {
					s.timestamps, s.values = s.TimestampsUnixNano(), s.Values()
					if done += 1 + s.timestamps.Len(); done > often {
						if ctx.Err() != nil {
							return ctx.Err()
						}
						done = 0
					}
					s.read()
					if err := visit(&s); err != nil {
						return err
					}
				}
			}
		}
	}
	return ctx.Err()
}

// profiles returns the Profiles of a scope.
func (p *payload) profiles(rp pprofile.ResourceProfiles, sp pprofile.ScopeProfiles) (all []*profile) {
	withTime := map[State]bool{}
	for _, of := range sp.Profiles().All() {
		made := p.profile(rp, of)
		withTime[made.state] = withTime[made.state] || made.unit > 0
		all = append(all, made)
	}
	for _, made := range all {
		made.counted = made.unit == 0 && withTime[made.state]
	}
	return all
}

func (p *payload) profile(rp pprofile.ResourceProfiles, of pprofile.Profile) *profile {
	made := &profile{payload: p, resource: rp, Profile: of, from: uint64(of.Time())}
	if d := of.DurationNano(); d > 0 {
		made.to = addClamped(made.from, d)
	}
	sampleType, periodType := p.text(of.SampleType().TypeStrindex()), p.text(of.PeriodType().TypeStrindex())
	made.unit = nanosecondsOf[p.text(of.SampleType().UnitStrindex())]
	if of.Period() > 0 {
		made.period = multiplyClamped(uint64(of.Period()), nanosecondsOf[p.text(of.PeriodType().UnitStrindex())])
	}
	made.state, made.marks = stateOf(sampleType, periodType, made.unit > 0)
	return made
}

// wall is the state of samples of the wall clock, which may be on a CPU or not.
const wall = "wall clock"

// wallType is the sample type, or the period type, of such samples.
const wallType = "wall"

// stateOf returns the state of samples that state none, and what their timestamps mark.
func stateOf(sampleType, periodType string, isTime bool) (state State, marks string) {
	switch {
	case sampleType == "off_cpu" || sampleType == "events" && isTime: // the eBPF profiler records them when the thread is back on a CPU
		return State{State: timing.Blocked}, timing.MarksEnd
	case sampleType == "events": // beside off_cpu
		return State{State: timing.Blocked}, timing.MarksInstant
	case sampleType == wallType || periodType == wallType:
		return State{State: wall}, timing.MarksInstant
	case sampleType == "cpu" || sampletypes.CountsSamples(sampleType):
		return State{State: timing.Running}, timing.MarksInstant
	case sampleType == "delay" || sampleType == "contentions":
		return State{State: timing.Blocked, Reason: timing.Lock}, timing.MarksInstant
	}
	return State{State: sampleType}, timing.MarksInstant
}

// read reads the attributes of the sample.
func (s *sample) read() {
	s.marks, s.state = s.profile.marks, s.profile.state
	if state := s.attribute(roleState); state != "" {
		s.state = State{State: state}
	}
	if reason := s.attribute(roleReason); reason != "" {
		s.state.Reason = reason
	}
	if marks := s.attribute(roleMarks); marks != "" {
		s.marks = marks
	}
}

// attribute returns the value of an attribute of the sample or its Profile, "" if neither has it.
func (s *sample) attribute(r role) string {
	for _, indices := range [...]pcommon.Int32Slice{s.AttributeIndices(), s.Profile.AttributeIndices()} {
		for k := range indices.Len() {
			if i := int(indices.At(k)); i > 0 && i < len(s.payload.attributes) && s.payload.attributes[i].role == r {
				return s.payload.attributes[i].text
			}
		}
	}
	return ""
}

// value returns the value beside a timestamp. Values that do not stand beside timestamps are that of the first one, in total.
func (s *sample) value(k int) int64 {
	switch n := s.values.Len(); {
	case n == s.timestamps.Len():
		return s.values.At(k)
	case n == 0:
		return 1
	case k == 0:
		return sampletypes.ValueOf(s.Sample)
	}
	return 0
}

// extent returns the interval [start, end) that a timestamp stands for. They are equal if it is an instant.
func (s *sample) extent(k int) (start, end uint64) {
	at := s.timestamps.At(k)
	start, end = at, at
	switch {
	case s.marks == timing.MarksStart:
		end = addClamped(at, s.length(k))
	case s.marks == timing.MarksEnd:
		start = at - min(at, s.length(k))
	case s.state.State == timing.Running || s.state.State == wall:
		length := s.period
		if length == 0 {
			length = s.length(k)
		}
		start = at - min(at, length)
	}
	// A timestamp outside of its Profile is not moved.
	if s.to > 0 {
		start, end = max(start, min(s.from, at)), min(end, max(s.to, at))
	}
	return start, end
}

// isDrawn reports whether the sample says what a lane does.
func (s *sample) isDrawn() bool {
	return !s.counted && (s.state.State == wall || s.state.class() != noTime)
}

// time returns the time of a value in nanoseconds: of a count of samples on a CPU, that of as many periods.
func (s *sample) time(value int64) uint64 {
	unit := s.unit
	if unit == 0 && s.state.State == timing.Running {
		unit = s.period
	}
	return multiplyClamped(uint64(max(value, 0)), unit)
}

// length returns the value beside a timestamp in nanoseconds, 0 if it is no time.
func (s *sample) length(k int) uint64 { return multiplyClamped(uint64(max(s.value(k), 0)), s.unit) }

// State is what a thread does.
type State struct {
	State  string
	Reason string // "" if it is not known
}

// String writes the state for people.
func (s State) String() string {
	if s.Reason == "" {
		return s.State
	}
	return s.State + ": " + s.Reason
}

// class is a kind of time.
type class uint8

const (
	onCPU class = iota
	offCPU
	locked
	noTime
)

// class returns what kind of time a state is.
func (s State) class() class {
	switch {
	case s.State == timing.Running:
		return onCPU
	case s.State == timing.Blocked && s.Reason == timing.Lock:
		return locked
	case s.State == timing.Blocked || s.State == timing.Runnable || s.State == timing.Syscall:
		return offCPU
	}
	return noTime
}

func addClamped(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

func multiplyClamped(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}
