// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Names of resource attributes.
const (
	AttributeServiceName       = "service.name"
	AttributeServiceInstanceID = "service.instance.id"

	attributeExecutableName = "process.executable.name"
)

// unknownService is OpenTelemetry's name for a service without a name.
const unknownService = "unknown_service"

// Attribute is an attribute with a string value.
type Attribute struct{ Key, Value string }

// NewResource returns the attributes of maps as those of a resource. Later maps
// override earlier ones.
func NewResource(attributes ...map[string]string) pcommon.Map {
	resource := pcommon.NewMap()
	for _, from := range attributes {
		PutStrings(resource, from)
	}
	return resource
}

// PutStrings sets each attribute of from in to, in order of the keys, so that equal
// attributes give equal bytes.
func PutStrings(to pcommon.Map, from map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		to.PutStr(key, from[key])
	}
}

// putAll is PutStrings for values of any type.
func putAll(to, from pcommon.Map) {
	values := maps.Collect(from.All())
	for _, key := range slices.Sorted(maps.Keys(values)) {
		values[key].CopyTo(to.PutEmpty(key))
	}
}

// setServiceName adds a missing service.name, as OpenTelemetry's SDKs do.
func setServiceName(resource pcommon.Map) {
	if name, ok := resource.Get(AttributeServiceName); ok && name.AsString() != "" {
		return
	}
	name := unknownService
	if executable, ok := resource.Get(attributeExecutableName); ok && executable.AsString() != "" {
		name += ":" + executable.AsString()
	}
	resource.PutStr(AttributeServiceName, name)
}

// setProfileAttributes sets temporality and ProfileAttributes of each Profile. It
// appends entries that the dictionary lacks.
func setProfileAttributes(dictionary pprofile.ProfilesDictionary, profiles pprofile.ProfilesSlice, types []string, p Payload) error {
	index := attributeIndex{dictionary: dictionary, keys: map[string]int32{}, entries: map[Attribute]int32{}}
	for i, profile := range profiles.All() {
		var attributes []Attribute
		if p.Temporality != nil {
			if value := p.Temporality(types[i]); value != TemporalityUnknown {
				attributes = append(attributes, Attribute{attributeTemporality, string(value)})
			}
		}
		if p.ProfileAttributes != nil {
			attributes = append(attributes, p.ProfileAttributes(types[i])...)
		}
		for _, a := range attributes {
			at, err := index.of(a)
			if err != nil {
				return err
			}
			profile.AttributeIndices().Append(at)
		}
	}
	return nil
}

// attributeIndex finds attributes with string values in a dictionary. It searches the
// dictionary once per key, however many Profiles and values there are.
type attributeIndex struct {
	dictionary pprofile.ProfilesDictionary
	keys       map[string]int32 // string indices of the keys searched for
	entries    map[Attribute]int32
}

// of returns the index of the attribute, which it adds if the dictionary lacks it.
func (x *attributeIndex) of(a Attribute) (int32, error) {
	key, searched := x.keys[a.Key]
	if !searched {
		var err error
		if key, err = x.search(a.Key); err != nil {
			return 0, err
		}
	}
	if at, found := x.entries[a]; found {
		return at, nil
	}
	table := x.dictionary.AttributeTable()
	at := int32(table.Len())
	entry := table.AppendEmpty()
	entry.SetKeyStrindex(key)
	entry.Value().SetStr(a.Value)
	x.entries[a] = at
	return at, nil
}

// search finds the string of the key and all attributes with it.
func (x *attributeIndex) search(name string) (int32, error) {
	key, err := pprofile.SetString(x.dictionary.StringTable(), name)
	if err != nil {
		return 0, err
	}
	x.keys[name] = key
	for i, entry := range x.dictionary.AttributeTable().All() {
		if entry.KeyStrindex() != key || entry.UnitStrindex() != 0 || entry.Value().Type() != pcommon.ValueTypeStr {
			continue
		}
		a := Attribute{name, entry.Value().Str()}
		if _, duplicate := x.entries[a]; !duplicate {
			x.entries[a] = int32(i)
		}
	}
	return key, nil
}

// renameAttributes renames attributes of samples, by changing the string of their key
// in place. A key keeps its name if something else uses its string, or if the new name
// is in the dictionary, since a sample may have both.
func renameAttributes(pd pprofile.Profiles, names map[string]string) {
	if len(names) == 0 {
		return
	}
	newNames := map[string]bool{}
	for _, name := range names {
		newNames[name] = true
	}
	table := pd.Dictionary().StringTable()
	renamed := map[int32]string{} // new names, by the index of the old one
	taken := map[string]bool{}
	for i, text := range table.All() {
		if name := names[text]; name != "" {
			renamed[int32(i)] = name
		}
		if newNames[text] {
			taken[text] = true
		}
	}
	if len(renamed) == 0 {
		return
	}
	visitStringsExceptKeys(pd, func(index int32) { delete(renamed, index) })
	for index, name := range renamed {
		if !taken[name] {
			table.SetAt(int(index), name)
		}
	}
}

// visitStringsExceptKeys calls visit for each string index outside attribute keys.
func visitStringsExceptKeys(pd pprofile.Profiles, visit func(index int32)) {
	dictionary := pd.Dictionary()
	for _, a := range dictionary.AttributeTable().All() {
		visit(a.UnitStrindex())
	}
	for _, f := range dictionary.FunctionTable().All() {
		visit(f.NameStrindex())
		visit(f.SystemNameStrindex())
		visit(f.FilenameStrindex())
	}
	for _, m := range dictionary.MappingTable().All() {
		visit(m.FilenameStrindex())
	}
	for _, resourceProfiles := range pd.ResourceProfiles().All() {
		for _, scopeProfiles := range resourceProfiles.ScopeProfiles().All() {
			for _, p := range scopeProfiles.Profiles().All() {
				for _, v := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
					visit(v.TypeStrindex())
					visit(v.UnitStrindex())
				}
			}
		}
	}
}
