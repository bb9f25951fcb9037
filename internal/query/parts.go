// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// summarySize is the memory of a summary in bytes, with its place in a map. Its texts are those of the payload.
const summarySize = 400

// errManySums says that the parts of a payload have too many summaries.
var errManySums = errors.New("too many sums")

// eachPart calls visit with the summaries of the parts of a payload that has passed dictionary.CheckValues. There may be at most so
// many.
func eachPart(pd pprofile.Profiles, most int, divide func(pprofile.ResourceProfiles, pprofile.Profile) []contents.Part, visit func(part int, of *contents.Summary) error) error {
	summaries, indices := contents.SummarizeParts(pd, most, divide)
	if len(summaries) > most {
		return errManySums
	}
	for i := range summaries {
		if err := visit(indices[i], &summaries[i]); err != nil {
			return err
		}
	}
	return nil
}

// newPart returns a part of a Profile without samples.
func newPart(index int, start, duration uint64) contents.Part {
	end := max(start, start+duration) // it may overflow
	return contents.Part{Index: index, Time: start, Total: contents.Total{Start: start, Latest: start, End: end, Covered: end - start, Profiles: 1}}
}

// addTime adds a timestamp to a part.
func addTime(p *contents.Part, t uint64) {
	if p.Timestamps = true; t < p.Start || p.Start == 0 {
		p.Start = t
	}
	p.Latest, p.End = max(p.Latest, t), max(p.End, t)
	p.Covered = p.End - p.Start
}

// addValue adds a sample to a part.
func addValue(p *contents.Part, value int64) {
	p.Samples++
	p.Sum = sampletypes.AddSaturated(p.Sum, value)
}

// parts are those of one Profile.
type parts struct {
	all []contents.Part

	profile pprofile.Profile
	whole   *contents.Part // all of the Profile; nil until a part needs it
	states  []partState    // of all
	places  map[int]int    // in all, by index; those of earlier Profiles are no longer right
}

// partState is what is known of a part while samples are added.
type partState struct {
	sample int   // the last one, of which the part has some; -1 before the first, and complete of a part that has all
	value  int64 // of the last sample, if it is divided, and not added yet
	open   bool  // the last sample is to be added
}

const complete = -2

// reset starts with another Profile.
func (ps *parts) reset(p pprofile.Profile) {
	ps.all, ps.states, ps.profile, ps.whole = ps.all[:0], ps.states[:0], p, nil
	if ps.places == nil {
		ps.places = map[int]int{}
	}
}

// finish returns all parts.
func (ps *parts) finish() []contents.Part {
	for place := range ps.all {
		ps.flush(place)
	}
	return ps.all
}

// find returns the place of a part, which may not be there yet.
func (ps *parts) find(index int) (place int, known bool) {
	if n := len(ps.all); n > 0 && ps.all[n-1].Index == index { // mostly it is the last one
		return n - 1, true
	}
	place, known = ps.places[index]
	return place, known && place < len(ps.all) && ps.all[place].Index == index
}

func (ps *parts) add(p contents.Part, sample int) (place int) {
	place = len(ps.all)
	ps.all, ps.states = append(ps.all, p), append(ps.states, partState{sample: sample})
	ps.places[p.Index] = place
	return place
}

// flush adds the value of a divided sample.
func (ps *parts) flush(place int) {
	if state := &ps.states[place]; state.open {
		addValue(&ps.all[place], state.value)
		state.value, state.open = 0, false
	}
}

// unclipped returns a part with the time of the Profile, without samples.
func (ps *parts) unclipped(index int) contents.Part {
	return newPart(index, uint64(ps.profile.Time()), ps.profile.DurationNano())
}

// addProfile adds a part with all samples.
func (ps *parts) addProfile(index int) {
	if _, known := ps.find(index); known {
		return
	}
	if ps.whole == nil {
		ps.whole = &contents.Part{Time: uint64(ps.profile.Time()), Total: contents.Measure(ps.profile)}
	}
	p := *ps.whole
	p.Index = index
	ps.add(p, complete)
}

// addSample adds a sample, unless the part has it already. Samples come in their order.
func (ps *parts) addSample(index, sample int) {
	place, known := ps.find(index)
	if !known {
		place = ps.add(ps.unclipped(index), -1)
	}
	ps.addTo(place, sample)
}

// addTo is addSample for a part that is there.
func (ps *parts) addTo(place, sample int) {
	if at := ps.states[place].sample; at == complete || at == sample {
		return
	}
	ps.flush(place)
	ps.states[place].sample = sample
	addWhole(&ps.all[place], ps.profile.Samples().At(sample))
}

func addWhole(p *contents.Part, sample pprofile.Sample) {
	addValue(p, sampletypes.ValueOf(sample))
	timestamps := sample.TimestampsUnixNano()
	for k := range timestamps.Len() {
		addTime(p, timestamps.At(k))
	}
}

// addTimestamp adds the timestamp k of a sample, with its value.
func (ps *parts) addTimestamp(place, sample, k int) {
	s, state := ps.profile.Samples().At(sample), &ps.states[place]
	values, timestamps := s.Values(), s.TimestampsUnixNano()
	if state.sample != sample {
		ps.flush(place)
		state.sample, state.open = sample, true
		if values.Len() != timestamps.Len() && values.Len() > 0 { // it cannot be divided
			state.value = sampletypes.ValueOf(s)
		}
	}
	switch values.Len() {
	case timestamps.Len():
		state.value = sampletypes.AddSaturated(state.value, values.At(k))
	case 0:
		state.value++
	}
	addTime(&ps.all[place], timestamps.At(k))
}

// division divides the Profiles of a payload. The index of a part is its group times the stride, plus the step.
type division struct {
	groups *groups
	steps  Steps // one of all time if there are none
	stride int   // the number of steps, and one more if Profiles without timestamps are whole: their step is that after the last one
	parts  parts

	ofSamples []int // their groups, in one Profile
	profiles  int   // so many were divided
	stamped   []int // by group: the last Profile of which a sample of the group has timestamps, by number
}

func newDivision(pd pprofile.Profiles, by []string, steps *Steps, room int64) *division {
	d := &division{groups: newGroups(pd, by, room), steps: Steps{Count: 1}}
	if steps != nil {
		d.steps = *steps
	}
	d.stride = d.steps.Count
	return d
}

// partsOf returns what each part has of a Profile. Without samples it is in no group that samples tell apart.
func (d *division) partsOf(rp pprofile.ResourceProfiles, p pprofile.Profile) []contents.Part {
	d.parts.reset(p)
	d.profiles++
	d.groups.startResource(rp)
	switch {
	case d.groups.err != nil:
	case d.steps.Length > 0:
		d.divide(p)
	case d.groups.apart():
		for i, sample := range p.Samples().All() {
			d.parts.addSample(d.groups.ofSample(p, sample), i)
		}
	default:
		d.parts.addProfile(d.groups.ofProfile())
	}
	if d.groups.err != nil {
		return nil
	}
	all := d.parts.finish()
	for i := range all {
		all[i].Whole = d.steps.Length == 0 || all[i].Index%d.stride == d.steps.Count
	}
	return all
}

// divide adds the parts that steps have of a Profile. As a Selection does, a step has the timestamps that are in it, and the samples
// without timestamps of a Profile that starts in it, unless these are whole.
func (d *division) divide(p pprofile.Profile) {
	samples, starts := p.Samples(), d.steps.contains(uint64(p.Time()))
	d.groupSamples(p)
	step, counts := d.steps.Count, d.stride > d.steps.Count
	if !counts && starts {
		step, counts = d.steps.of(uint64(p.Time())), true
	}
	if !d.groups.apart() {
		if group := d.groups.ofProfile(); counts && !d.isStamped(group) {
			d.parts.addProfile(group*d.stride + step)
			return
		}
	}
	for i := range samples.Len() {
		group, timestamps := d.ofSamples[i], samples.At(i).TimestampsUnixNano()
		switch {
		case timestamps.Len() > 0:
			for k := range timestamps.Len() {
				if t := timestamps.At(k); d.steps.contains(t) {
					d.parts.addTimestamp(d.clipped(p, group, d.steps.of(t)), i, k)
				}
			}
		case d.isStamped(group) && starts:
			d.parts.addTo(d.clipped(p, group, d.steps.of(uint64(p.Time()))), i)
		case !d.isStamped(group) && counts:
			d.parts.addSample(group*d.stride+step, i)
		}
	}
}

// groupSamples finds the groups of all samples, and which of them have timestamps.
func (d *division) groupSamples(p pprofile.Profile) {
	samples, group := p.Samples(), 0
	d.ofSamples = d.ofSamples[:0]
	if !d.groups.apart() {
		group = d.groups.ofProfile()
	}
	for i := range samples.Len() {
		sample := samples.At(i)
		if d.groups.apart() {
			group = d.groups.ofSample(p, sample)
		}
		d.ofSamples = append(d.ofSamples, group)
		if sample.TimestampsUnixNano().Len() > 0 {
			for group >= len(d.stamped) {
				d.stamped = append(d.stamped, 0)
			}
			d.stamped[group] = d.profiles
		}
	}
}

func (d *division) isStamped(group int) bool {
	return group < len(d.stamped) && d.stamped[group] == d.profiles
}

// clipped returns the place of a part whose Profile is that in the step.
func (d *division) clipped(p pprofile.Profile, group, step int) int {
	index := group*d.stride + step
	place, known := d.parts.find(index)
	if !known {
		from := d.steps.From.Add(time.Duration(step) * d.steps.Length)
		start, duration := clip(p, from, from.Add(d.steps.Length))
		place = d.parts.add(newPart(index, start, duration), -1)
	}
	return place
}
