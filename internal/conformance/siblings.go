// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// siblings are the last profiles of a scope, each by its path and the places of its sample
// identities.
type siblings struct {
	paths  []string
	places []map[string]int
}

// maxSiblings is how many profiles each profile of a scope is compared with: those before it.
const maxSiblings = 16

// checkOrder reports the first sample of a profile that its siblings have in another order.
func (c *checker) checkOrder(path string, before *siblings, identities []string) {
	for n, places := range before.places {
		last, lastSample := -1, 0
		for i, identity := range identities {
			place, ok := places[identity]
			if !ok {
				continue
			}
			if place < last {
				c.report(SampleOrder, fmt.Sprintf("%s.samples[%d]", path, i),
					fmt.Sprintf("after samples[%d], and in %s samples[%d] and samples[%d]", lastSample, before.paths[n], place, last),
					"in the same order as in "+before.paths[n])
				break
			}
			last, lastSample = place, i
		}
	}
	places := make(map[string]int, len(identities))
	for i, identity := range identities {
		places[identity] = i
	}
	if len(before.places) == maxSiblings {
		before.paths, before.places = slices.Delete(before.paths, 0, 1), slices.Delete(before.places, 0, 1)
	}
	before.paths, before.places = append(before.paths, path), append(before.places, places)
}

// checkSampleTypes reports a pprof.scope.sample_type_order that is not of the profiles of sp.
func (c *checker) checkSampleTypes(path string, sp *profilespb.ScopeProfiles) {
	order, found := c.attribute(sp, "pprof.scope.sample_type_order")
	if !found {
		return
	}
	listed, _ := c.attribute(sp, "pprof.scope.sample_types")
	types := map[int64]string{} // by index in the pprof
	for i, v := range listed.GetArrayValue().GetValues() {
		types[int64(i)] = c.stringOf(v)
	}
	complete := len(types) == 0 // each type has a profile
	var indices []int64
	for _, v := range order.GetArrayValue().GetValues() {
		indices = append(indices, v.GetIntValue())
	}
	ok := len(indices) == len(sp.GetProfiles())
	for i := 0; ok && i < len(indices); i++ {
		t := sp.GetProfiles()[i].GetSampleType()
		unit := strings.NewReplacer("%", "%25", "/", "%2F").Replace(c.text(t.GetUnitStrindex()))
		own, at := c.text(t.GetTypeStrindex())+"/"+unit, indices[i]
		name, known := types[at]
		if complete && !known {
			types[at], name, known = own, own, true
		}
		ok = known && name == own
	}
	for at := range types {
		ok = ok && at >= 0 && at < int64(len(types))
	}
	if !ok {
		c.report(SampleTypes, path+".scope.attributes", fmt.Sprintf("%v of %d listed sample types and %s", indices,
			len(listed.GetArrayValue().GetValues()), count(len(sp.GetProfiles()), "profile")), "for each profile the index of its sample type")
	}
}

// attribute returns the value of an attribute of a scope.
func (c *checker) attribute(sp *profilespb.ScopeProfiles, key string) (v *commonpb.AnyValue, found bool) {
	for _, kv := range sp.GetScope().GetAttributes() {
		if kv.GetKey() == key || kv.GetKeyStrindex() != 0 && c.text(kv.GetKeyStrindex()) == key {
			return kv.GetValue(), true
		}
	}
	return nil, false
}

// stringOf returns a string that is written out or referenced.
func (c *checker) stringOf(v *commonpb.AnyValue) string {
	if i := v.GetStringValueStrindex(); i != 0 {
		return c.text(i)
	}
	return v.GetStringValue()
}

// text returns string i, or a text that no string is equal to if there is none.
func (c *checker) text(i int32) string {
	if !c.strings.has(i) {
		return "\xff" + strconv.Itoa(int(i))
	}
	return c.dict.StringTable[i]
}
