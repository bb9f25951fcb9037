// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"math"
	"strconv"

	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// checkProfiles checks resources, scopes, profiles and samples, and marks the entries
// that they reach.
func (c *checker) checkProfiles(data *profilespb.ProfilesData) {
	c.checkList("message", "resource_profiles", len(data.GetResourceProfiles()))
	for r, rp := range data.GetResourceProfiles() {
		path := fmt.Sprintf("resource_profiles[%d]", r)
		c.checkList(path, "scope_profiles", len(rp.GetScopeProfiles()))
		c.keyValues(path+".resource.attributes", rp.GetResource().GetAttributes())
		for s, sp := range rp.GetScopeProfiles() {
			path := fmt.Sprintf("%s.scope_profiles[%d]", path, s)
			c.checkList(path, "profiles", len(sp.GetProfiles()))
			c.keyValues(path+".scope.attributes", sp.GetScope().GetAttributes())
			var siblings []sibling
			for p, profile := range sp.GetProfiles() {
				path := fmt.Sprintf("%s.profiles[%d]", path, p)
				siblings = c.checkOrder(path, siblings, c.checkProfile(path, profile))
			}
			c.checkSampleTypes(path, sp)
		}
	}
}

func (c *checker) checkList(path, field string, length int) {
	if length == 0 {
		c.report(EmptyList, path, "without "+field, "with "+field)
	}
}

// checkProfile returns the identities of the samples.
func (c *checker) checkProfile(path string, p *profilespb.Profile) (identities []string) {
	c.checkType(path+".sample_type", p.GetSampleType())
	c.checkType(path+".period_type", p.GetPeriodType())
	c.attributeSet(path, p.GetAttributeIndices())
	if n := len(p.GetProfileId()); n != 0 && n != 16 {
		c.report(ProfileID, path+".profile_id", count(n, "byte"), "16 bytes, or none")
	}
	if (p.GetOriginalPayloadFormat() == "") != (len(p.GetOriginalPayload()) == 0) {
		c.report(Payload, path+".original_payload", fmt.Sprintf("%s with the format %q", count(len(p.GetOriginalPayload()), "byte"), p.GetOriginalPayloadFormat()),
			"set together with original_payload_format")
	}
	if len(p.GetSamples()) == 0 {
		c.report(EmptyProfile, path, "without samples", "a profile with samples")
	}
	return c.checkSamples(path, p)
}

func (c *checker) checkType(path string, t *profilespb.ValueType) {
	c.ref(&c.strings, t.GetTypeStrindex(), path, ".type_strindex")
	c.ref(&c.strings, t.GetUnitStrindex(), path, ".unit_strindex")
}

func (c *checker) checkSamples(profilePath string, p *profilespb.Profile) (identities []string) {
	first := make(map[string]int, len(p.GetSamples()))
	profileShape, shapeOf := "", 0
	for i, s := range p.GetSamples() {
		path := fmt.Sprintf("%s.samples[%d]", profilePath, i)
		identity := c.ref(&c.stacks, s.GetStackIndex(), path, ".stack_index") + "|" +
			c.attributeSet(path, s.GetAttributeIndices()) + "|" +
			c.ref(&c.links, s.GetLinkIndex(), path, ".link_index")
		identities = append(identities, identity)

		if j, ok := first[identity]; ok {
			c.report(SampleIdentity, path, fmt.Sprintf("stack %d, attributes %v, link %d, as samples[%d] is", s.GetStackIndex(), s.GetAttributeIndices(), s.GetLinkIndex(), j),
				"an identity that is unique in the profile")
		} else {
			first[identity] = i
		}

		values, timestamps := len(s.GetValues()), len(s.GetTimestampsUnixNano())
		found := count(values, "value") + " and " + count(timestamps, "timestamp")
		shape := "values and timestamps"
		switch {
		case values == 0 && timestamps == 0:
			c.report(SampleData, path, found, "values, timestamps or both")
			continue
		case values == 0:
			shape = "timestamps only"
		case timestamps == 0:
			shape = "values only"
			if values != 1 {
				c.report(SampleData, path, found, "one value, as there are no timestamps")
			}
		case values != timestamps:
			c.report(SampleData, path, found, "as many values as timestamps")
		}
		if profileShape == "" {
			profileShape, shapeOf = shape, i
		} else if shape != profileShape {
			c.report(SampleShape, path, shape, fmt.Sprintf("%s, as samples[%d] is", profileShape, shapeOf))
		}
		c.checkTimestamps(path, p, s)
	}
	return identities
}

func (c *checker) checkTimestamps(path string, p *profilespb.Profile, s *profilespb.Sample) {
	start, end := p.GetTimeUnixNano(), p.GetTimeUnixNano()+p.GetDurationNano()
	if end < start {
		end = math.MaxUint64
	}
	for i, ts := range s.GetTimestampsUnixNano() {
		switch {
		case ts >= start && ts < end:
		case c.result.Counts[TimeRange] >= maxFindings: // a sample may have millions
			c.result.Counts[TimeRange]++
		default:
			c.report(TimeRange, fmt.Sprintf("%s.timestamps_unix_nano[%d]", path, i), strconv.FormatUint(ts, 10),
				fmt.Sprintf("inside the profile, %d to %d", start, end))
		}
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
