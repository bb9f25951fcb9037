// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"encoding/hex"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// group is the part of a payload that goes into files of one directory.
type group struct {
	names []string // of directories, one inside the other: one for each key
	parts []dictionary.Part
}

// groupsOf returns the groups of pd by the values of keys, which are those of resource attributes or
// otelcol_profiles.type, in order of their first appearance. The result pd is the payload that their parts are of, which has
// no string references: a failed attempt to write pd has made some when it marshalled it.
func groupsOf(pd pprofile.Profiles, keys []string) (_ pprofile.Profiles, groups []*group, err error) {
	if err = check(pd, keys); err == nil {
		pd, err = dictionary.ResolveStrings(pd)
	}
	if err != nil {
		return pd, nil, err
	}
	if len(keys) == 0 {
		return pd, []*group{{}}, nil
	}
	if pd.ResourceProfiles().Len() == 0 {
		return pd, []*group{{names: groupNames(pcommon.NewMap(), keys)}}, nil
	}
	byNames := map[string]*group{}
	add := func(names []string, resource int, scopes ...int) {
		key := strings.Join(names, "/")
		g := byNames[key]
		if g == nil {
			g = &group{names: names}
			byNames[key] = g
			groups = append(groups, g)
		}
		if n := len(g.parts); n > 0 && g.parts[n-1].Resource == resource {
			g.parts[n-1].Scopes = append(g.parts[n-1].Scopes, scopes...)
		} else {
			g.parts = append(g.parts, dictionary.Part{Resource: resource, Scopes: scopes})
		}
	}
	byType := slices.Index(keys, attrkey.ProfileType)
	for i, rp := range pd.ResourceProfiles().All() {
		names := groupNames(rp.Resource().Attributes(), keys)
		if byType < 0 || rp.ScopeProfiles().Len() == 0 {
			add(names, i)
			continue
		}
		for j, sp := range rp.ScopeProfiles().All() {
			names = slices.Clone(names)
			names[byType] = layout.GroupDir(attrkey.ProfileType, typeGroupName(pd, sp))
			add(names, i, j)
		}
	}
	return pd, groups, nil
}

// halves returns two groups with half of the scopes each, in their order, or nil if it has only one.
func (g *group) halves(pd pprofile.Profiles) []*group {
	type scope struct{ resource, scope int }
	var scopes []scope
	add := func(resource int, chosen []int) {
		if chosen == nil {
			for j := range pd.ResourceProfiles().At(resource).ScopeProfiles().Len() {
				scopes = append(scopes, scope{resource, j})
			}
		}
		for _, j := range chosen {
			scopes = append(scopes, scope{resource, j})
		}
	}
	for _, part := range g.parts {
		add(part.Resource, part.Scopes)
	}
	if g.parts == nil {
		for i := range pd.ResourceProfiles().Len() {
			add(i, nil)
		}
	}
	if len(scopes) < 2 {
		return nil
	}
	var halves []*group
	for _, some := range [][]scope{scopes[:len(scopes)/2], scopes[len(scopes)/2:]} {
		half := &group{names: g.names}
		for _, s := range some {
			if n := len(half.parts); n > 0 && half.parts[n-1].Resource == s.resource {
				half.parts[n-1].Scopes = append(half.parts[n-1].Scopes, s.scope)
			} else {
				half.parts = append(half.parts, dictionary.Part{Resource: s.resource, Scopes: []int{s.scope}})
			}
		}
		halves = append(halves, half)
	}
	return halves
}

// check returns an error if pd can never be written, as it says what in pd refers to nothing or nests too deep. Only payloads that
// may be split must refer to something.
func check(pd pprofile.Profiles, keys []string) error {
	if len(keys) == 0 {
		return dictionary.CheckValues(pd)
	}
	return dictionary.Check(pd)
}

// typeGroupName returns the name of the group for the profile type of a scope.
func typeGroupName(pd pprofile.Profiles, sp pprofile.ScopeProfiles) string {
	if value, found := sp.Scope().Attributes().Get(attrkey.ProfileType); found {
		return groupNameOf(value)
	}
	text := func(i int32) string { return dictionary.ValidString(pd.Dictionary().StringTable(), i) }
	if derived := sampletypes.ProfileType(sp.Scope().Attributes(), sampletypes.Of(sp, text)); derived != "" {
		return layout.GroupName(derived)
	}
	return layout.Unset
}

// groupNames returns the directories for the attributes of a resource. The value of that for otelcol_profiles.type, which a scope has, is Unset.
func groupNames(attributes pcommon.Map, keys []string) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		name := layout.Unset
		if value, found := attributes.Get(key); found && key != attrkey.ProfileType {
			name = groupNameOf(value)
		}
		names[i] = layout.GroupDir(key, name)
	}
	return names
}

// groupNameOf gives different names to different values.
func groupNameOf(value pcommon.Value) string {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return layout.GroupName(value.Str())
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return layout.TypedGroupName(strings.ToLower(value.Type().String()), value.AsString())
	case pcommon.ValueTypeBytes:
		return layout.TypedGroupName("bytes", hex.EncodeToString(value.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		// Their text does not tell 1 from "1".
		exact := dictionary.AppendPdata(nil, value)
		return layout.TypedGroupName(strings.ToLower(value.Type().String()), hex.EncodeToString(exact))
	default:
		return layout.TypedGroupName("null", "")
	}
}
