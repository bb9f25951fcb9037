// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// withReferences has attribute values that pdata's own setters cannot make.
const withReferences = `{
	"resourceProfiles": [{"scopeProfiles": [{"profiles": [
		{"sampleType": {"typeStrindex": 1}, "samples": [{"attributeIndices": [1, 2, 3], "values": ["7"]}]}
	]}]}],
	"dictionary": {
		"stringTable": ["", "cpu", "key", "text", "list", "nothing"],
		"stackTable": [{}],
		"attributeTable": [
			{},
			{"keyStrindex": 2, "value": {"stringValueStrindex": 3}},
			{"keyStrindex": 4, "value": {"arrayValue": {"values": [{"stringValueStrindex": 3}, {"intValue": "1"}]}}},
			{"keyStrindex": 5, "value": {}}
		]
	}
}`

func TestAttributeValuesThatAreReferences(t *testing.T) {
	pd := profiletest.UnmarshalJSON(t, []byte(withReferences))
	before := pprofile.NewProfiles()
	pd.CopyTo(before)
	p := convertOne(t, otlp{pd, pd.Dictionary()})
	require.Equal(t, map[string][]string{"key": {"text"}, "list": {"text"}, "nothing": {""}}, p.Sample[0].Label)
	require.Equal(t, map[string][]int64{"list": {1}}, p.Sample[0].NumLabel)
	require.Equal(t, before.Dictionary().StringTable().AsRaw(), pd.Dictionary().StringTable().AsRaw(), "the input is untouched")
	require.Equal(t, 1, pd.ResourceProfiles().Len())
}

// Marshalling makes references of the strings of a resource, which pdata can no
// longer read afterwards.
func TestProfilesThatHaveBeenMarshalled(t *testing.T) {
	o := newOTLP()
	rp := o.resource()
	rp.Resource().Attributes().PutStr("process.executable.name", "b")
	sp := rp.ScopeProfiles().AppendEmpty()
	sp.Scope().Attributes().PutStr("pprof.scope.default_sample_type", "x")
	setOrder(sp, 1, 0)
	for _, name := range []string{"x", "y"} {
		addValue(o.profile(sp, name, ""), o.stack(o.location(o.mapping("/a", 1), 1), o.location(o.mapping("/b", 2), 2)), 1)
	}
	profiletest.Proto(t, o.Profiles)
	_, readable := rp.Resource().Attributes().Get("process.executable.name")
	require.False(t, readable, "if pdata can read them again, stringref.Resolve is not needed for resources")

	p := convertOne(t, o)
	require.Equal(t, "/b", p.Mapping[0].File)
	require.Equal(t, "x", p.DefaultSampleType)
	require.Equal(t, []string{"y/", "x/"}, typesOf(p))
}
