// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import "go.opentelemetry.io/collector/pdata/pprofile"

// OneOfEach returns a payload in which each index field leads somewhere. Tables have two entries.
func OneOfEach() pprofile.Profiles {
	pd, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles([]byte(oneOfEach))
	if err != nil {
		panic(err)
	}
	return pd
}

const oneOfEach = `{"dictionary": {
	"stringTable": ["", "one"],
	"mappingTable": [{}, {"filenameStrindex": 1, "attributeIndices": [1]}],
	"locationTable": [{}, {"mappingIndex": 1, "lines": [{"functionIndex": 1}], "attributeIndices": [1]}],
	"functionTable": [{}, {"nameStrindex": 1, "systemNameStrindex": 1, "filenameStrindex": 1}],
	"linkTable": [{}, {"traceId": "01000000000000000000000000000000"}],
	"attributeTable": [{}, {"keyStrindex": 1, "unitStrindex": 1}],
	"stackTable": [{}, {"locationIndices": [1]}]
}, "resourceProfiles": [{"scopeProfiles": [{"profiles": [{
	"sampleType": {"typeStrindex": 1, "unitStrindex": 1}, "periodType": {"typeStrindex": 1, "unitStrindex": 1}, "attributeIndices": [1],
	"samples": [{"stackIndex": 1, "linkIndex": 1, "attributeIndices": [1], "values": ["1"]}]
}]}]}]}`

// IndexFields set the index fields of OneOfEach, by their places in it.
func IndexFields() map[string]func(pd pprofile.Profiles, index int32) {
	function := func(pd pprofile.Profiles) pprofile.Function { return pd.Dictionary().FunctionTable().At(1) }
	mapping := func(pd pprofile.Profiles) pprofile.Mapping { return pd.Dictionary().MappingTable().At(1) }
	location := func(pd pprofile.Profiles) pprofile.Location { return pd.Dictionary().LocationTable().At(1) }
	attribute := func(pd pprofile.Profiles) pprofile.KeyValueAndUnit { return pd.Dictionary().AttributeTable().At(1) }
	profile := func(pd pprofile.Profiles) pprofile.Profile {
		return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
	}
	sample := func(pd pprofile.Profiles) pprofile.Sample { return profile(pd).Samples().At(0) }
	return map[string]func(pd pprofile.Profiles, index int32){
		"mapping_table[1].filename_strindex":     func(pd pprofile.Profiles, i int32) { mapping(pd).SetFilenameStrindex(i) },
		"mapping_table[1].attribute_indices[0]":  func(pd pprofile.Profiles, i int32) { mapping(pd).AttributeIndices().SetAt(0, i) },
		"location_table[1].mapping_index":        func(pd pprofile.Profiles, i int32) { location(pd).SetMappingIndex(i) },
		"location_table[1].lines[0].function_":   func(pd pprofile.Profiles, i int32) { location(pd).Lines().At(0).SetFunctionIndex(i) },
		"location_table[1].attribute_indices[0]": func(pd pprofile.Profiles, i int32) { location(pd).AttributeIndices().SetAt(0, i) },
		"function_table[1].name_strindex":        func(pd pprofile.Profiles, i int32) { function(pd).SetNameStrindex(i) },
		"function_table[1].system_name_strindex": func(pd pprofile.Profiles, i int32) { function(pd).SetSystemNameStrindex(i) },
		"function_table[1].filename_strindex":    func(pd pprofile.Profiles, i int32) { function(pd).SetFilenameStrindex(i) },
		"attribute_table[1].key_strindex":        func(pd pprofile.Profiles, i int32) { attribute(pd).SetKeyStrindex(i) },
		"attribute_table[1].unit_strindex":       func(pd pprofile.Profiles, i int32) { attribute(pd).SetUnitStrindex(i) },
		"stack_table[1].location_indices[0]":     func(pd pprofile.Profiles, i int32) { pd.Dictionary().StackTable().At(1).LocationIndices().SetAt(0, i) },
		"profiles[0].sample_type.type_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).SampleType().SetTypeStrindex(i) },
		"profiles[0].sample_type.unit_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).SampleType().SetUnitStrindex(i) },
		"profiles[0].period_type.type_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).PeriodType().SetTypeStrindex(i) },
		"profiles[0].period_type.unit_strindex":  func(pd pprofile.Profiles, i int32) { profile(pd).PeriodType().SetUnitStrindex(i) },
		"profiles[0].attribute_indices[0]":       func(pd pprofile.Profiles, i int32) { profile(pd).AttributeIndices().SetAt(0, i) },
		"samples[0].stack_index":                 func(pd pprofile.Profiles, i int32) { sample(pd).SetStackIndex(i) },
		"samples[0].link_index":                  func(pd pprofile.Profiles, i int32) { sample(pd).SetLinkIndex(i) },
		"samples[0].attribute_indices[0]":        func(pd pprofile.Profiles, i int32) { sample(pd).AttributeIndices().SetAt(0, i) },
	}
}
