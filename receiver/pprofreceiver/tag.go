// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// profileTag is an attribute of a Profile, with a string value.
type profileTag struct{ key, value string }

// tagProfiles puts on each Profile its temporality, where it is known, and what
// else the arrival tells of its sample type. Entries that the dictionary does not
// have yet are added at its ends.
func tagProfiles(dictionary pprofile.ProfilesDictionary, profiles pprofile.ProfilesSlice, types []string, a arrival) error {
	table := tagTable{dictionary: dictionary}
	for i, profile := range profiles.All() {
		var tags []profileTag
		if a.temporality != nil {
			if value := a.temporality(types[i]); value != temporalityUnknown {
				tags = append(tags, profileTag{attributeTemporality, string(value)})
			}
		}
		if a.profile != nil {
			tags = append(tags, a.profile(types[i])...)
		}
		for _, tag := range tags {
			index, err := table.index(tag)
			if err != nil {
				return err
			}
			profile.AttributeIndices().Append(index)
		}
	}
	return nil
}

// tagTable finds tags in a dictionary. It looks through the dictionary once for each
// key, whatever number of Profiles and values there are.
type tagTable struct {
	dictionary pprofile.ProfilesDictionary
	keys       map[string]int32 // strings of the keys that were looked for
	entries    map[profileTag]int32
}

// index is that of the attribute which is the tag.
func (t *tagTable) index(tag profileTag) (int32, error) {
	if index, known := t.entries[tag]; known {
		return index, nil
	}
	key, known := t.keys[tag.key]
	if !known {
		var err error
		if key, err = t.find(tag.key); err != nil {
			return 0, err
		}
		if index, found := t.entries[tag]; found {
			return index, nil
		}
	}
	attributes := t.dictionary.AttributeTable()
	index := int32(attributes.Len())
	attribute := attributes.AppendEmpty()
	attribute.SetKeyStrindex(key)
	attribute.Value().SetStr(tag.value)
	t.entries[tag] = index
	return index, nil
}

// find looks for the string of a key and the attributes that have it.
func (t *tagTable) find(name string) (int32, error) {
	if t.keys == nil {
		t.keys, t.entries = map[string]int32{}, map[profileTag]int32{}
	}
	key, err := pprofile.SetString(t.dictionary.StringTable(), name)
	if err != nil {
		return 0, err
	}
	t.keys[name] = key
	for i, attribute := range t.dictionary.AttributeTable().All() {
		if attribute.KeyStrindex() != key || attribute.UnitStrindex() != 0 || attribute.Value().Type() != pcommon.ValueTypeStr {
			continue
		}
		tag := profileTag{name, attribute.Value().Str()}
		if _, twice := t.entries[tag]; !twice {
			t.entries[tag] = int32(i)
		}
	}
	return key, nil
}
