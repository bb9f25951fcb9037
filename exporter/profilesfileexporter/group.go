// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"encoding/hex"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// group is the part that goes into files of one directory.
type group struct {
	names    []string // of directories, one inside the other: one for each key
	profiles pprofile.Profiles
	parts    []dictionary.Part // of the payload, for each resource of profiles; nil means that they are all of it
}

// part returns where in the payload the group's resource i is.
func (g group) part(i int) dictionary.Part {
	if g.parts == nil {
		return dictionary.Part{Resource: i}
	}
	return g.parts[i]
}

// groupsOf takes pd apart by the values of keys, which are those of resource attributes or
// profile.type, in order of their first appearance. Each of several groups has a copy of the entries it refers to,
// with a dictionary of its own; a single one is pd itself. pd is only read. An error
// says what in pd refers to nothing.
func groupsOf(pd pprofile.Profiles, keys []string, yield func(group)) error {
	if len(keys) == 0 {
		yield(group{profiles: pd})
		return nil
	}
	if err := dictionary.Check(pd); err != nil {
		return err
	}
	// A payload that was marshalled before, for a call that failed, has references for strings.
	resolved, err := dictionary.ResolveStrings(pd)
	if err != nil {
		return err
	}
	all := membersOf(resolved, keys)
	switch len(all) {
	case 0:
		yield(group{names: groupNames(pcommon.NewMap(), keys), profiles: pd})
		return nil
	case 1:
		yield(group{names: all[0].names, profiles: pd})
		return nil
	}
	s := dictionary.NewSplitter(resolved)
	for _, m := range all {
		yield(group{names: m.names, profiles: s.TakeParts(m.parts), parts: m.parts})
	}
	return nil
}

// members are the parts of a payload that are in one group.
type members struct {
	names []string
	parts []dictionary.Part
}

// membersOf returns the groups of pd, which has no string references.
func membersOf(pd pprofile.Profiles, keys []string) (all []*members) {
	byNames := map[string]*members{}
	of := func(names []string) *members {
		key := strings.Join(names, "/")
		m := byNames[key]
		if m == nil {
			m = &members{names: names}
			byNames[key] = m
			all = append(all, m)
		}
		return m
	}
	byType := slices.Index(keys, sampletypes.ProfileTypeAttribute)
	for i, rp := range pd.ResourceProfiles().All() {
		names := groupNames(rp.Resource().Attributes(), keys)
		if byType < 0 || rp.ScopeProfiles().Len() == 0 {
			m := of(names)
			m.parts = append(m.parts, dictionary.Part{Resource: i})
			continue
		}
		for j, sp := range rp.ScopeProfiles().All() {
			names = slices.Clone(names)
			names[byType] = typeGroupName(pd, sp)
			m := of(names)
			if n := len(m.parts); n == 0 || m.parts[n-1].Resource != i {
				m.parts = append(m.parts, dictionary.Part{Resource: i})
			}
			last := &m.parts[len(m.parts)-1]
			last.Scopes = append(last.Scopes, j)
		}
	}
	return all
}

// typeGroupName returns the name of the group for the profile type of a scope.
func typeGroupName(pd pprofile.Profiles, sp pprofile.ScopeProfiles) string {
	if value, found := sp.Scope().Attributes().Get(sampletypes.ProfileTypeAttribute); found {
		return groupNameOf(value)
	}
	text := func(i int32) string { return dictionary.ValidString(pd.Dictionary().StringTable(), i) }
	if derived := sampletypes.ProfileType(sp.Scope().Attributes(), sampletypes.Of(sp, text)); derived != "" {
		return recordfile.GroupName(derived)
	}
	return recordfile.Unset
}

// groupNames returns the names for the attributes of a resource. That for profile.type, which a scope has, is Unset.
func groupNames(attributes pcommon.Map, keys []string) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = recordfile.Unset
		if key == sampletypes.ProfileTypeAttribute {
			continue
		}
		if value, found := attributes.Get(key); found {
			names[i] = groupNameOf(value)
		}
	}
	return names
}

// groupNameOf gives different names to different values.
func groupNameOf(value pcommon.Value) string {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return recordfile.GroupName(value.Str())
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return recordfile.TypedGroupName(strings.ToLower(value.Type().String()), value.AsString())
	case pcommon.ValueTypeBytes:
		return recordfile.TypedGroupName("bytes", hex.EncodeToString(value.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		// Their text does not tell 1 from "1".
		exact := dictionary.AppendPdata(nil, value)
		return recordfile.TypedGroupName(strings.ToLower(value.Type().String()), hex.EncodeToString(exact))
	default:
		return recordfile.TypedGroupName("null", "")
	}
}
