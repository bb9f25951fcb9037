// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Keys and values may be references to strings, which pdata's own setters cannot make.
func TestReferencesToStrings(t *testing.T) {
	attribute := func(value string, args ...any) otlp {
		pd := profiletest.UnmarshalJSON(t, []byte(`{"resourceProfiles": [{"scopeProfiles": [{"profiles": [{"samples": [{"attributeIndices": [1], "values": ["7"]}]}]}]}],
			"dictionary": {"stringTable": ["", "k", "text"], "attributeTable": [{}, {"keyStrindex": 1, "value": `+fmt.Sprintf(value, args...)+`}]}}`))
		return otlp{pd, pd.Dictionary()}
	}
	list, keys := `{"arrayValue": {"values": [{"stringValueStrindex": %d}, {"intValue": "1"}]}}`, `{"kvlistValue": {"values": [{"keyStrindex": %d, "value": {}}, {"key": "z", "value": {}}]}}`
	require.Equal(t, []string{"text"}, convertOne(t, attribute(list, 2)).Sample[0].Label["k"])
	for index, key := range []string{"", "k", "text"} {
		require.Equal(t, []string{`{"` + key + `":null,"z":null}`}, convertOne(t, attribute(keys, index)).Sample[0].Label["k"])
	}
	for _, index := range []int32{3, -1, math.MaxInt32, math.MinInt32} {
		for _, value := range []string{list, keys} {
			_, err := pprofsOf(Marshaler{}, attribute(value, index).Profiles)
			require.EqualError(t, err, fmt.Sprintf("a string reference in attribute_table[1].value is %d: string_table has 3 entries", index))
		}
	}
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
