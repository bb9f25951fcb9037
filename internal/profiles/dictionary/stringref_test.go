// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Many references cost a few allocations each, and little memory.
func TestManyReferencesAreCheap_M3(t *testing.T) {
	const references = 10_000
	text := `{"dictionary": {"stringTable": ["", "text"], "attributeTable": [{}` +
		strings.Repeat(`, {"value": {"stringValueStrindex": 1}}`, references) + `]}}`
	pd := profiletest.UnmarshalJSON(t, []byte(text))
	resolve := func() pprofile.Profiles {
		resolved, err := ResolveStrings(pd)
		require.NoError(t, err)
		return resolved
	}
	table := resolve().Dictionary().AttributeTable()
	require.Equal(t, references+1, table.Len())
	for i := range references {
		require.Equal(t, "text", table.At(i+1).Value().Str())
	}
	require.Less(t, testing.AllocsPerRun(1, func() { resolve() }), float64(15*references))
	pd = profiletest.UnmarshalJSON(t, []byte(`{"dictionary": {"stringTable": ["", "text"], "attributeTable": [{"keyStrindex": 1, "value": {"stringValueStrindex": 1}}]}}`))
	require.Equal(t, "text", resolve().Dictionary().AttributeTable().At(0).Value().Str(), "the first attribute is no zero value")
}

func TestManyReferencesToALongStringAreRejected_M3(t *testing.T) {
	long, reference := strings.Repeat("a", 1<<20), `{"stringValueStrindex": 1}`
	many := strings.Repeat(reference+", ", 1000) + reference
	text := `{"dictionary": {"stringTable": ["", "` + long + `"], "attributeTable": [{}, {"value": {"arrayValue": {"values": [` + many + `]}}}]}}`
	_, err := ResolveStrings(profiletest.UnmarshalJSON(t, []byte(text)))
	require.EqualError(t, err, "the string references up to attribute_table[1].value have more than 32 times as many bytes of text as the payload")
}
