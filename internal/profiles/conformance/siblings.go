// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
)

// sibling is a profile of a scope.
type sibling struct {
	path   string
	places map[string]int // of its sample identities
}

// maxSiblings is how many profiles each profile of a scope is compared with: those before it.
const maxSiblings = 16

// checkOrder reports the first sample of a profile that its siblings have in another order.
// It returns the siblings of the next profile.
func (c *checker) checkOrder(path string, siblings []sibling, identities []string) []sibling {
	for _, before := range siblings {
		last, lastSample := -1, 0
		for i, identity := range identities {
			place, ok := before.places[identity]
			if !ok {
				continue
			}
			if place < last {
				c.report(SampleOrder, fmt.Sprintf("%s.samples[%d]", path, i),
					fmt.Sprintf("after samples[%d], and in %s samples[%d] and samples[%d]", lastSample, before.path, place, last),
					"in the same order as in "+before.path)
				break
			}
			last, lastSample = place, i
		}
	}
	places := make(map[string]int, len(identities))
	for i, identity := range identities {
		places[identity] = i
	}
	return append(siblings[max(0, len(siblings)-maxSiblings+1):], sibling{path, places})
}

// checkSampleTypes reports a pprof.scope.sample_type_order that is not of the profiles of sp.
func (c *checker) checkSampleTypes(path string, sp *profilespb.ScopeProfiles) {
	order, found := c.attribute(sp, "pprof.scope.sample_type_order")
	if !found {
		return
	}
	listed, _ := c.attribute(sp, attrkey.SampleTypes)
	types := map[int64]string{} // by index in the pprof
	for i, v := range listed.GetArrayValue().GetValues() {
		types[int64(i)] = v.GetStringValue()
		if index := v.GetStringValueStrindex(); index != 0 {
			types[int64(i)] = c.text(index)
		}
	}
	isListed := len(types) > 0 // otherwise, each type has a profile
	var indices []int64
	for _, v := range order.GetArrayValue().GetValues() {
		indices = append(indices, v.GetIntValue())
	}
	ok := len(indices) == len(sp.GetProfiles())
	for i := 0; ok && i < len(indices); i++ {
		t := sp.GetProfiles()[i].GetSampleType()
		unit := strings.NewReplacer("%", "%25", "/", "%2F").Replace(c.text(t.GetUnitStrindex()))
		own := c.text(t.GetTypeStrindex()) + "/" + unit
		if !isListed && types[indices[i]] == "" {
			types[indices[i]] = own
		}
		ok = types[indices[i]] == own
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

// text returns string i, or a text that no string is equal to if there is none.
func (c *checker) text(i int32) string {
	if !c.strings.has(i) {
		return "\xff" + strconv.Itoa(int(i))
	}
	return c.dict.StringTable[i]
}
