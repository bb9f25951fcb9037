// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// tagged is a dictionary of n strings and n attributes, and that many Profiles.
func tagged(strings, profiles int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	dictionary := pd.Dictionary()
	dictionary.StringTable().Append("")
	dictionary.AttributeTable().AppendEmpty()
	for i := range strings {
		dictionary.StringTable().Append(fmt.Sprint("s", i))
		dictionary.AttributeTable().AppendEmpty().SetKeyStrindex(int32(i))
	}
	all := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles()
	for range profiles {
		all.AppendEmpty()
	}
	return pd
}

func profilesOf(pd pprofile.Profiles) pprofile.ProfilesSlice {
	return pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
}

// The result is that of searching for each attribute separately, as pdata does.
func TestProfileAttributesAgreeWithSetAttribute(t *testing.T) {
	r := rand.New(rand.NewPCG(profiletest.Seed(t), 0))
	for range 500 {
		one := tagged(3, 8)
		for range r.IntN(4) { // attributes like those that are looked for
			key, err := pprofile.SetString(one.Dictionary().StringTable(), []string{"k0", attrkey.Temporality, "k1"}[r.IntN(3)])
			require.NoError(t, err)
			a := one.Dictionary().AttributeTable().AppendEmpty()
			a.SetKeyStrindex(key)
			a.SetUnitStrindex(int32(r.IntN(2)))
			a.Value().SetStr([]string{"v0", "v1", "delta", ""}[r.IntN(4)])
			if r.IntN(3) == 0 {
				a.Value().SetInt(0)
			}
		}
		other := pprofile.NewProfiles()
		one.CopyTo(other)
		tags := map[string][]Attribute{}
		types := make([]string, 8)
		for i := range types {
			types[i] = fmt.Sprint(i)
			for range r.IntN(3) {
				tags[types[i]] = append(tags[types[i]], Attribute{fmt.Sprint("k", r.IntN(2)), fmt.Sprint("v", r.IntN(3))})
			}
		}
		a := Payload{ProfileAttributes: func(sampleType string) []Attribute { return tags[sampleType] }, Temporality: Always(sampletypes.Delta)}
		require.NoError(t, setProfileAttributes(one.Dictionary(), profilesOf(one), types, a.Temporality, &a))
		for i, profile := range profilesOf(other).All() {
			for _, tag := range append([]Attribute{{attrkey.Temporality, "delta"}}, tags[types[i]]...) {
				key, err := pprofile.SetString(other.Dictionary().StringTable(), tag.Key)
				require.NoError(t, err)
				attribute := pprofile.NewKeyValueAndUnit()
				attribute.SetKeyStrindex(key)
				attribute.Value().SetStr(tag.Value)
				index, err := pprofile.SetAttribute(other.Dictionary().AttributeTable(), attribute)
				require.NoError(t, err)
				profile.AttributeIndices().Append(index)
			}
		}
		require.Equal(t, profiletest.Proto(t, other), profiletest.Proto(t, one))
	}
}

// The cost of sample types and strings adds up; it does not multiply.
func TestManySampleTypesOfManyStrings_R8(t *testing.T) {
	const size, many = 100_000, 1024
	types := make([]string, many)
	for i := range types {
		types[i] = fmt.Sprint("type", i)
	}
	// A name of its own for each type, as sample_type_config may have.
	a := Payload{
		Temporality: Always(sampletypes.Delta),
		ProfileAttributes: func(sampleType string) []Attribute {
			return []Attribute{{"display_name", sampleType}}
		},
	}
	took := func(profiles int) time.Duration {
		pd := tagged(size, profiles)
		start := time.Now()
		require.NoError(t, setProfileAttributes(pd.Dictionary(), profilesOf(pd), types, a.Temporality, &a))
		took := time.Since(start)
		assert.Equal(t, 1+size+1+profiles, pd.Dictionary().AttributeTable().Len())
		return took
	}
	// The machine may be busy for a while: the best times count, of as many rounds as that takes.
	one, all := took(1), took(many)
	for round := range 50 {
		if round >= 2 && all < 30*one {
			break
		}
		one, all = min(one, took(1)), min(all, took(many))
	}
	assert.Less(t, all, 30*one)
}
