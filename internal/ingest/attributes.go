// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"maps"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
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

// setServiceName adds a missing service.name, as OpenTelemetry's SDKs do. It returns the name.
func setServiceName(resource pcommon.Map) (name string, missing bool) {
	if name, ok := resource.Get(AttributeServiceName); ok && name.AsString() != "" {
		return name.AsString(), false
	}
	name = unknownService
	if executable, ok := resource.Get(attributeExecutableName); ok && executable.AsString() != "" {
		name += ":" + executable.AsString()
	}
	resource.PutStr(AttributeServiceName, name)
	return name, true
}

// setProfileAttributes sets temporality and ProfileAttributes of each Profile. It
// searches the dictionary once, however many Profiles and attributes there are, and
// appends the entries that it lacks.
func setProfileAttributes(dictionary pprofile.ProfilesDictionary, profiles pprofile.ProfilesSlice, types []string, temporality TemporalityFunc, p *Payload) error {
	attributes := make([][]Attribute, len(types)) // by Profile
	for i, sampleType := range types {
		attributes[i] = p.attributesOf(sampleType, temporality)
	}
	indices := findAttributes(dictionary, slices.Concat(attributes...))
	table := dictionary.AttributeTable()
	keys := map[string]int32{} // string indices
	for i, profile := range profiles.All() {
		for _, a := range attributes[i] {
			key, known := keys[a.Key]
			if !known {
				var err error
				if key, err = pprofile.SetString(dictionary.StringTable(), a.Key); err != nil {
					return err
				}
				keys[a.Key] = key
			}
			if indices[a] == 0 {
				indices[a] = int32(table.Len())
				entry := table.AppendEmpty()
				entry.SetKeyStrindex(key)
				entry.Value().SetStr(a.Value)
			}
			profile.AttributeIndices().Append(indices[a])
		}
	}
	return nil
}

// attributesOf returns the attributes for the Profile of a sample type.
func (p *Payload) attributesOf(sampleType string, temporality TemporalityFunc) (attributes []Attribute) {
	if temporality != nil {
		if value := temporality(sampleType); value != "" {
			attributes = append(attributes, Attribute{attrkey.Temporality, value})
		}
	}
	if p.ProfileAttributes != nil {
		attributes = append(attributes, p.ProfileAttributes(sampleType)...)
	}
	return attributes
}

// findAttributes returns the index of each attribute in the dictionary, 0 if it is not there.
func findAttributes(dictionary pprofile.ProfilesDictionary, attributes []Attribute) map[Attribute]int32 {
	indices := map[Attribute]int32{}
	for _, a := range attributes {
		indices[a] = 0
	}
	if len(indices) == 0 {
		return indices
	}
	names := dictionary.StringTable()
	for i, entry := range dictionary.AttributeTable().All() {
		if entry.UnitStrindex() != 0 || entry.Value().Type() != pcommon.ValueTypeStr {
			continue
		}
		a := Attribute{names.At(int(entry.KeyStrindex())), entry.Value().Str()}
		if found, wanted := indices[a]; wanted && found == 0 { // the first one counts
			indices[a] = int32(i)
		}
	}
	return indices
}

// renameAttributes renames attributes of samples, by changing the string of their key
// in place. A key keeps its name if something else uses its string, or if the new name
// is in the dictionary, since a sample may have both.
func renameAttributes(pd pprofile.Profiles, names map[string]string) {
	table := pd.Dictionary().StringTable()
	renamed := map[int32]string{} // new names, by the index of the old one
	if len(names) > 0 {
		for i, text := range table.All() {
			if name, found := names[text]; found && !slices.Contains(table.AsRaw(), name) {
				renamed[int32(i)] = name
			}
		}
	}
	if len(renamed) == 0 {
		return
	}
	visitStringsExceptKeys(pd, func(index int32) { delete(renamed, index) })
	for index, name := range renamed {
		table.SetAt(int(index), name)
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
	for p := range sampletypes.ProfilesOf(pd) {
		for _, v := range []pprofile.ValueType{p.SampleType(), p.PeriodType()} {
			visit(v.TypeStrindex())
			visit(v.UnitStrindex())
		}
	}
}
