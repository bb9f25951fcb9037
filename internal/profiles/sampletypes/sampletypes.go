// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package sampletypes describes the sample types of the Profiles of a ScopeProfiles, and reads and
// writes the scope attributes that restore those of a pprof.
//
// pprof.scope.sample_type_order holds, for each Profile of its own ScopeProfiles, the
// index of its sample type in the pprof. If a sample type has no Profile, because its
// values were all zero or because its Profile is in another ScopeProfiles,
// otelcol_profiles.sample_types lists all sample types as "type/unit", in the order of the
// pprof. A package that removes or adds Profiles writes both again.
//
// [MappingFlags] are the attributes of what a mapping has in a pprof, and [AddressName] names its locations without a function.
// [FunctionName] is how a function is shown.
package sampletypes

import (
	"iter"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
)

// Attributes of a scope: the order of the sample types of a pprof, and the name of the default one.
const (
	OrderAttribute   = string(semconv.PprofScopeSampleTypeOrderKey)
	DefaultAttribute = string(semconv.PprofScopeDefaultSampleTypeKey)
)

// MappingFlags are the attributes for has_functions, has_filenames, has_line_numbers and has_inline_frames of a mapping,
// in the order of pprof's fields.
var MappingFlags = [...]string{
	string(semconv.PprofMappingHasFunctionsKey), string(semconv.PprofMappingHasFilenamesKey),
	string(semconv.PprofMappingHasLineNumbersKey), string(semconv.PprofMappingHasInlineFramesKey),
}

// maxTypes is how many sample types of a pprof are restored. Each pprof of a scope gets all of them.
const maxTypes = 1024

// Type is a sample type.
type Type struct{ Type, Unit string }

// ProfilesOf iterates over all Profiles of pd.
func ProfilesOf(pd pprofile.Profiles) iter.Seq[pprofile.Profile] {
	return func(yield func(pprofile.Profile) bool) {
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// Of returns the sample types of the Profiles of a scope. text returns a string of the dictionary.
func Of(sp pprofile.ScopeProfiles, text func(i int32) string) []Type {
	return AppendTypes(make([]Type, 0, sp.Profiles().Len()), sp, text)
}

// AppendTypes appends the sample types of the Profiles of a scope.
func AppendTypes(types []Type, sp pprofile.ScopeProfiles, text func(i int32) string) []Type {
	profiles := sp.Profiles()
	for i := range profiles.Len() {
		t := profiles.At(i).SampleType()
		types = append(types, Type{text(t.TypeStrindex()), text(t.UnitStrindex())})
	}
	return types
}

// ProfileType returns the attribute otelcol_profiles.type of a scope or, without it, the profile type that the
// sample types tell beyond doubt, if any.
func ProfileType(scope pcommon.Map, types []Type) string {
	if v, found := scope.Get(attrkey.ProfileType); found {
		return v.AsString()
	}
	for _, known := range knownTypes {
		if slices.ContainsFunc(types, func(t Type) bool { return t.Type == known.sampleType }) {
			return known.profileType
		}
	}
	return "" // also of mutex and block profiles, whose sample types are equal
}

// OwnProfileType returns the profile type of a sample type that no other profile type has, and "" for any other one, such
// as contentions of mutex and block profiles.
func OwnProfileType(sampleType string) string { return ownTypes[sampleType] }

var ownTypes = map[string]string{
	"cpu": "cpu", "wall": "wall",
	"goroutine": "goroutine", "goroutines": "goroutine", "goroutineleak": "goroutineleak",
	"alloc_objects": "heap", "alloc_space": "heap", "inuse_objects": "heap", "inuse_space": "heap",
	"objects": "heap", "space": "heap", // of Node.js
	"alloc_samples": "heap", "alloc_size": "heap", "lock_count": "mutex", "lock_time": "mutex", // of .NET
	// Of Datadog's libraries, which send all in one.
	"cpu-time": "cpu", "cpu-samples": "cpu", "wall-time": "wall", "wall-samples": "wall",
	"alloc-objects": "heap", "alloc-samples": "heap", "alloc-size": "heap", "alloc-space": "heap",
	"heap-live-objects": "heap", "heap-live-samples": "heap", "heap-live-size": "heap", "heap-space": "heap",
	"inuse-objects": "heap", "inuse-samples": "heap", "inuse-size": "heap", "inuse-space": "heap",
}

// CountsSamples reports whether a sample type only counts the samples of the others of its pprof.
func CountsSamples(sampleType string) bool { return sampleType == "samples" || sampleType == "sample" }

var knownTypes = [...]struct{ profileType, sampleType string }{
	{"wall", "wall"},
	{"cpu", "cpu"},
	{"heap", "inuse_space"},
	{"heap", "alloc_space"},
	{"heap", "space"}, // of Node.js
	{"goroutine", "goroutine"},
	{"goroutine", "goroutines"},
	{"goroutineleak", "goroutineleak"},
}

// Read returns the sample types of the pprof that Profiles with the types profiles are
// of, and for each Profile the index of its type. It returns nil if scope does not say
// so, or if its value does not fit the Profiles.
func Read(scope pcommon.Map, profiles []Type) (all []Type, order []int) {
	order, ok := readOrder(scope, len(profiles))
	if !ok || len(order) == 0 {
		return nil, nil
	}
	if list, found := scope.Get(attrkey.SampleTypes); found {
		all, ok = parseList(list)
	} else {
		all, ok = typesOf(profiles, order)
	}
	if !ok || len(all) > maxTypes {
		return nil, nil
	}
	for i, t := range profiles {
		if at := order[i]; at >= len(all) || all[at] != t {
			return nil, nil
		}
	}
	return all, order
}

// typesOf returns the sample types of a pprof of which all have a Profile.
func typesOf(profiles []Type, order []int) ([]Type, bool) {
	last := slices.Max(order)
	if last >= len(profiles) || !isOnto(order, last+1) {
		return nil, false
	}
	all := make([]Type, last+1)
	for i, t := range profiles {
		all[order[i]] = t
	}
	return all, true
}

// readOrder returns the indices of n Profiles.
func readOrder(scope pcommon.Map, n int) ([]int, bool) {
	v, found := scope.Get(OrderAttribute)
	if !found || v.Type() != pcommon.ValueTypeSlice || v.Slice().Len() != n {
		return nil, false
	}
	order := make([]int, 0, n)
	for _, e := range v.Slice().All() {
		at := int(e.Int())
		if e.Type() != pcommon.ValueTypeInt || at < 0 {
			return nil, false
		}
		order = append(order, at)
	}
	return order, true
}

func parseList(list pcommon.Value) ([]Type, bool) {
	if list.Type() != pcommon.ValueTypeSlice || list.Slice().Len() > maxTypes {
		return nil, false
	}
	all := make([]Type, 0, list.Slice().Len())
	for _, e := range list.Slice().All() {
		slash := strings.LastIndexByte(e.Str(), '/')
		if slash < 0 {
			return nil, false
		}
		unit := e.Str()[slash+1:]
		if strings.Contains(unit, "%") { // Replace allocates memory also if it replaces nothing
			unit = unescape.Replace(unit)
		}
		all = append(all, Type{e.Str()[:slash], unit})
	}
	return all, true
}

// A unit may contain a slash; the last slash of an element ends the type.
var (
	escape   = strings.NewReplacer("%", "%25", "/", "%2F")
	unescape = strings.NewReplacer("%25", "%", "%2F", "/")
)

// isOnto reports whether order has each of the numbers below n, and no other.
func isOnto(order []int, n int) bool {
	seen := make([]bool, n)
	for _, at := range order {
		if at >= n {
			return false
		}
		seen[at] = true
	}
	return !slices.Contains(seen, false)
}

// Write sets the attributes of a scope whose Profiles have the indices order in all. It
// lists the sample types only if one has no Profile. Without Profiles it removes both.
func Write(scope pcommon.Map, all []Type, order []int) {
	WriteOrder(scope, order)
	if len(order) == 0 || isOnto(order, len(all)) {
		return
	}
	list := scope.PutEmptySlice(attrkey.SampleTypes)
	list.EnsureCapacity(len(all))
	for _, t := range all {
		list.AppendEmpty().SetStr(t.Type + "/" + escape.Replace(t.Unit))
	}
}

// WriteOrder is Write for Profiles of all sample types.
func WriteOrder(scope pcommon.Map, order []int) {
	scope.Remove(OrderAttribute)
	scope.Remove(attrkey.SampleTypes)
	if len(order) == 0 {
		return
	}
	numbers := scope.PutEmptySlice(OrderAttribute)
	numbers.EnsureCapacity(len(order))
	for _, at := range order {
		numbers.AppendEmpty().SetInt(int64(at))
	}
}
