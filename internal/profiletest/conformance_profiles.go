// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"math"

	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// checkProfiles checks resources, scopes, profiles and samples, and marks what
// they reach in the tables.
func (c *tablesCheck) checkProfiles(data *profilespb.ProfilesData) {
	for r, rp := range data.GetResourceProfiles() {
		place := fmt.Sprintf("resource_profiles[%d]", r)
		c.keyValues(place, "resource.attributes", rp.GetResource().GetAttributes())
		c.reachKeyValues(rp.GetResource().GetAttributes())
		for s, sp := range rp.GetScopeProfiles() {
			place := fmt.Sprintf("%s.scope_profiles[%d]", place, s)
			c.keyValues(place, "scope.attributes", sp.GetScope().GetAttributes())
			c.reachKeyValues(sp.GetScope().GetAttributes())
			for p, profile := range sp.GetProfiles() {
				c.checkProfile(fmt.Sprintf("%s.profiles[%d]", place, p), profile)
			}
		}
	}
}

func (c *tablesCheck) checkProfile(place string, p *profilespb.Profile) {
	for _, vt := range []struct {
		field string
		value *profilespb.ValueType
	}{{"sample_type", p.GetSampleType()}, {"period_type", p.GetPeriodType()}} {
		c.ref(c.strings, vt.value.GetTypeStrindex(), place, vt.field+".type_strindex")
		c.ref(c.strings, vt.value.GetUnitStrindex(), place, vt.field+".unit_strindex")
		c.strings.reach(vt.value.GetTypeStrindex())
		c.strings.reach(vt.value.GetUnitStrindex())
	}
	c.attributeSet(place, p.GetAttributeIndices())
	c.reachAttributes(p.GetAttributeIndices())
	if n := len(p.GetProfileId()); n != 0 && n != 16 {
		c.violate(ruleProfileID, "%s.profile_id has %d bytes, not 16", place, n)
	}
	if (p.GetOriginalPayloadFormat() == "") != (len(p.GetOriginalPayload()) == 0) {
		c.violate(rulePayload, "%s has original_payload_format %q and an original_payload of %d bytes, both must be set or neither",
			place, p.GetOriginalPayloadFormat(), len(p.GetOriginalPayload()))
	}
	c.checkSamples(place, p)
}

func (c *tablesCheck) checkSamples(profilePlace string, p *profilespb.Profile) {
	first := make(map[string]int, len(p.GetSamples()))
	profileShape, shapeOf := shapeNone, 0
	for i, s := range p.GetSamples() {
		place := fmt.Sprintf("%s.samples[%d]", profilePlace, i)
		identity := c.ref(c.stacks, s.GetStackIndex(), place, "stack_index") + "|" +
			c.attributeSet(place, s.GetAttributeIndices()) + "|" +
			c.ref(c.links, s.GetLinkIndex(), place, "link_index")
		c.reachStack(s.GetStackIndex())
		c.reachAttributes(s.GetAttributeIndices())
		c.links.reach(s.GetLinkIndex())

		if j, ok := first[identity]; ok {
			c.violate(ruleSampleIdentity, "%s has the identity of samples[%d]: stack %d, attributes %v, link %d",
				place, j, s.GetStackIndex(), s.GetAttributeIndices(), s.GetLinkIndex())
		} else {
			first[identity] = i
		}

		values, timestamps := len(s.GetValues()), len(s.GetTimestampsUnixNano())
		shape := shapeOfCounts(values, timestamps)
		switch {
		case shape == shapeNone:
			c.violate(ruleSampleData, "%s has neither values nor timestamps", place)
			continue
		case shape == ShapeBoth && values != timestamps:
			c.violate(ruleSampleData, "%s has %d values and %d timestamps, they must be equally many", place, values, timestamps)
		case shape == ShapeValues && values != 1:
			c.violate(ruleSampleData, "%s has %d values without timestamps, an aggregate is one value", place, values)
		}
		if profileShape == shapeNone {
			profileShape, shapeOf = shape, i
		} else if shape != profileShape {
			c.violate(ruleSampleShape, "%s has %s, samples[%d] has %s", place, shape, shapeOf, profileShape)
		}
		c.checkTimestamps(place, p, s)
	}
}

func (c *tablesCheck) checkTimestamps(place string, p *profilespb.Profile, s *profilespb.Sample) {
	start, end := p.GetTimeUnixNano(), p.GetTimeUnixNano()+p.GetDurationNano()
	if end < start {
		end = math.MaxUint64
	}
	for i, ts := range s.GetTimestampsUnixNano() {
		if ts < start || ts >= end {
			c.warn(adviceTime, "%s.timestamps_unix_nano[%d] is %d, outside of the profile, %d to %d", place, i, ts, start, end)
		}
	}
}
