// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/stringref"
	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// group is what goes into files of one directory.
type group struct {
	names     []string // of directories, one inside the other: one for each key
	profiles  pprofile.Profiles
	resources []int // where in the payload its resources are; nil means that they are all of it
}

// resource returns where in the payload the group's resource i is.
func (g group) resource(i int) int {
	if g.resources == nil {
		return i
	}
	return g.resources[i]
}

// groupsOf takes pd apart by the values of the resource attributes keys, in order of
// their first appearance. Of several groups each has a copy of what it refers to,
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
	// What was marshalled before, for a call that failed, has references for strings.
	resolved, err := stringref.Resolve(pd)
	if err != nil {
		return err
	}
	type members struct {
		names     []string
		resources []int
	}
	var all []*members
	byNames := map[string]*members{}
	for i, rp := range resolved.ResourceProfiles().All() {
		names := groupNames(rp.Resource().Attributes(), keys)
		key := strings.Join(names, "/")
		m := byNames[key]
		if m == nil {
			m = &members{names: names}
			byNames[key] = m
			all = append(all, m)
		}
		m.resources = append(m.resources, i)
	}
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
		yield(group{names: m.names, profiles: s.Take(m.resources), resources: m.resources})
	}
	return nil
}

func groupNames(attributes pcommon.Map, keys []string) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		if value, found := attributes.Get(key); found {
			names[i] = groupNameOf(value)
		} else {
			names[i] = segment.Unset
		}
	}
	return names
}

// groupNameOf gives different names to different values.
func groupNameOf(value pcommon.Value) string {
	switch value.Type() {
	case pcommon.ValueTypeStr:
		return segment.GroupName(value.Str())
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return segment.TypedGroupName(strings.ToLower(value.Type().String()), value.AsString())
	case pcommon.ValueTypeBytes:
		return segment.TypedGroupName("bytes", hex.EncodeToString(value.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		// Their text does not tell 1 from "1".
		exact := dictionary.AppendPdata(nil, value)
		return segment.TypedGroupName(strings.ToLower(value.Type().String()), hex.EncodeToString(exact))
	default:
		return segment.TypedGroupName("null", "")
	}
}
