// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package expand

import (
	"math"
	"math/big"
	"slices"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
)

// Options say what [Normalize] takes out of expanded profiles before they are
// compared. The zero value takes nothing out.
type Options struct {
	// IgnoreEntities empties resource and scope: pprof has no resource, and
	// only a part of the scope.
	IgnoreEntities bool
	// IgnoreProfileID empties the profile id.
	IgnoreProfileID bool
	// IgnoreTime sets time and duration to 0.
	IgnoreTime bool
	// Merge makes one of all profiles that are equal except for time, duration, id,
	// dropped attributes and shape: the earliest time that is not 0, to the
	// latest end. Sums are added, points appended. The scope loses the attributes
	// that describe which Profiles it has.
	Merge bool
	// IgnoreZeroSamples drops the samples of each profile whose sum and points are
	// 0: a missing value is 0.
	IgnoreZeroSamples bool
	// SameCode gives frames that are the same code in several processes one form.
	SameCode bool
	// Labels reduces attributes to those that google/pprof has. Those of a mapping that hold a build id
	// are one, and frames have no profile.frame.type. Those of samples are labels: lists of
	// strings, then of numbers with a unit each. A string has no unit, and a number that is 0
	// and has no unit is dropped, as google/pprof does when it parses.
	Labels bool
}

// AsPprof takes out all that a comparison of OTLP with google/pprof cannot hold
// equal: data that pprof does not have, and data that google/pprof loses when it parses.
var AsPprof = Options{
	IgnoreEntities:  true,
	IgnoreProfileID: true,
	Merge:           true,
	Labels:          true,
}

// Normalize returns profiles as o says, in order of first occurrence. It does
// not change its argument.
func Normalize(profiles []Profile, o Options) []Profile {
	n := &normalizer{Options: o, in: newInterner(), frames: map[*Frame]*Frame{}}
	out := make([]Profile, 0, len(profiles))
	sets := make([]*sampleSet, 0, len(profiles))
	place := map[string]int{}
	for _, e := range profiles {
		samples := e.Samples
		e.Samples = nil
		n.header(&e)
		i, ok := place[mergeKey(e)]
		if !ok || !o.Merge {
			i = len(out)
			place[mergeKey(e)] = i
			if o.Merge {
				e.ProfileID, e.DroppedAttributes, e.Shape = "", 0, ShapeNone
			}
			out = append(out, e)
			sets = append(sets, newSampleSet(n.in))
		} else {
			out[i].Time, out[i].Duration = joinTimes(out[i].Time, out[i].Duration, e.Time, e.Duration)
		}
		for _, s := range samples {
			sets[i].add(n.sample(s))
		}
	}
	for i := range out {
		out[i].Samples = sets[i].samples()
		if o.IgnoreZeroSamples {
			out[i].Samples = slices.DeleteFunc(out[i].Samples, isZero)
		}
	}
	return out
}

// mergeKey is equal for profiles that [Options.Merge] makes one.
func mergeKey(e Profile) string {
	e.Time, e.Duration, e.ProfileID, e.DroppedAttributes, e.Shape = 0, 0, "", 0, ShapeNone
	return e.Header()
}

// joinTimes returns the earliest start that is not 0 and the duration to the
// latest end.
func joinTimes(time1, duration1, time2, duration2 uint64) (time, duration uint64) {
	if time1 == 0 || time2 == 0 {
		return max(time1, time2), max(duration1, duration2)
	}
	end := func(time, duration uint64) uint64 {
		if time > math.MaxUint64-duration {
			return math.MaxUint64
		}
		return time + duration
	}
	time = min(time1, time2)
	return time, max(end(time1, duration1), end(time2, duration2)) - time
}

type normalizer struct {
	Options
	in     *interner
	frames map[*Frame]*Frame
}

func (n *normalizer) header(e *Profile) {
	if n.IgnoreEntities {
		e.Resource, e.Scope = Entity{}, Entity{}
	}
	if n.Merge {
		e.Scope.Attributes = slices.DeleteFunc(slices.Clone(e.Scope.Attributes), func(a Attribute) bool {
			return a.Key == "pprof.scope.sample_type_order" || a.Key == attrkey.SampleTypes
		})
	}
	if n.IgnoreProfileID {
		e.ProfileID = ""
	}
	if n.IgnoreTime {
		e.Time, e.Duration = 0, 0
	}
}

// sample returns a copy of s.
func (n *normalizer) sample(s *Sample) *Sample {
	out := &Sample{
		Stack:      s.Stack,
		Attributes: s.Attributes,
		Link:       s.Link,
		Sum:        new(big.Int).Set(s.Sum),
		Points:     slices.Clone(s.Points),
	}
	if n.Labels || n.SameCode {
		out.Stack = make([]*Frame, len(s.Stack))
		for i, f := range s.Stack {
			out.Stack[i] = n.frame(f)
		}
	}
	if n.Labels {
		out.Attributes = asLabels(s.Attributes)
	}
	return out
}

func (n *normalizer) frame(f *Frame) *Frame {
	if have, ok := n.frames[f]; ok {
		return have
	}
	out := *f
	if n.SameCode {
		out = sameCode(out)
	}
	n.frames[f] = &out
	if !n.Labels {
		return &out
	}
	out.Attributes = slices.DeleteFunc(slices.Clone(f.Attributes), func(a Attribute) bool { return a.Key == keyFrameType })
	out.Mapping.Attributes = slices.Clone(out.Mapping.Attributes)
	for i, a := range out.Mapping.Attributes {
		switch a.Key {
		case keyBuildIDGNU, keyBuildIDGo, keyBuildIDHTLHash:
			out.Mapping.Attributes[i].Key = "build_id"
		}
	}
	out.Mapping.Attributes = AttributeSet(out.Mapping.Attributes)
	return &out
}

func isZero(s *Sample) bool {
	return s.Sum.Sign() == 0 && !slices.ContainsFunc(s.Points, func(p Point) bool { return p.Value != 0 })
}

// asLabels brings attributes that hold label values into one form.
func asLabels(attributes []Attribute) []Attribute {
	var out []Attribute
	for _, a := range attributes {
		elements, ok := a.Value.([]any)
		if !ok {
			elements = []any{a.Value}
		}
		var texts, numbers []any
		isLabel := true
		for _, e := range elements {
			value, unit := e, a.Unit
			if pair, ok := e.(KeyValues); ok {
				value, unit = valueAndUnit(pair)
			}
			switch value := value.(type) {
			case string:
				texts = append(texts, value)
			case int64:
				if value != 0 || unit != "" {
					numbers = append(numbers, KeyValues{{Key: "value", Value: value}, {Key: "unit", Value: unit}})
				}
			default:
				isLabel = false
			}
		}
		switch {
		case !isLabel:
			out = append(out, a)
		case len(texts)+len(numbers) > 0:
			out = append(out, Attribute{Key: a.Key, Value: append(texts, numbers...)})
		}
	}
	return AttributeSet(out)
}

// valueAndUnit reads a {value, unit} list, whose unit may be missing. The value of another list is nil.
func valueAndUnit(pair KeyValues) (value any, unit string) {
	for _, kv := range pair {
		text, isText := kv.Value.(string)
		switch {
		case kv.Key == "value":
			value = kv.Value
		case kv.Key == "unit" && isText:
			unit = text
		default:
			return nil, ""
		}
	}
	return value, unit
}
