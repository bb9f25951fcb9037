// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/entity"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// The entities of resources that merge come together, in any order of arrival, and none
// refers to an attribute that was left out.
func TestEntitiesMerge_P15(t *testing.T) {
	type ref struct {
		kind             string
		ids, description []string
	}
	with := func(refs ...ref) pprofile.Profiles {
		pd := payloadtest.With(payloadtest.Interval(1, 1, 1), "host.id", "x", "os.name", "linux", "service.instance.id", "1")
		to := entity.ResourceEntityRefs(pd.ResourceProfiles().At(0).Resource())
		for _, r := range refs {
			e := to.AppendEmpty()
			e.SetType(r.kind)
			e.IdKeys().FromRaw(r.ids)
			e.DescriptionKeys().FromRaw(r.description)
		}
		return pd
	}
	host := ref{"host", []string{"host.id"}, []string{"os.name", "service.instance.id"}}
	instance := ref{"service.instance", []string{"service.instance.id"}, nil}
	bad := ref{"os\xff", []string{"os.name"}, nil}
	payloads := []pprofile.Profiles{with(host), with(), with(instance, host), with(bad)}
	get := func(options *Options) (all []ref) {
		out := merged(t, options, payloads...)
		require.Equal(t, 1, out.ResourceProfiles().Len())
		want := profiletest.ProtoOfCopy(t, out)
		slices.Reverse(payloads)
		require.Equal(t, want, profiletest.ProtoOfCopy(t, merged(t, options, payloads...)))
		for _, e := range entity.ResourceEntityRefs(out.ResourceProfiles().At(0).Resource()).All() {
			all = append(all, ref{e.Type(), e.IdKeys().AsRaw(), e.DescriptionKeys().AsRaw()})
		}
		return all
	}
	repaired := ref{`os\xff`, []string{"os.name"}, nil}
	options := defaultOptions()
	require.ElementsMatch(t, []ref{host, instance, repaired}, get(options))
	options.DropResourceAttributes = []string{"service.instance.id"}
	require.ElementsMatch(t, []ref{{"host", host.ids, []string{"os.name"}}, repaired}, get(options))
}

// Two attributes of one key on a resource or scope are rejected, alone.
func TestDuplicateAttributesAreRejected_P1(t *testing.T) {
	payload := func(resource, scope string) pprofile.Profiles {
		return profiletest.UnmarshalJSON(t, []byte(`{"resourceProfiles":[{"resource":{"attributes":[`+
			resource+`]},"scopeProfiles":[{"scope":{"attributes":[`+scope+
			`]},"profiles":[{"timeUnixNano":"1","durationNano":"1","samples":[{"values":["1"]}]}]}]}],"dictionary":{"stringTable":[""]}}`))
	}
	once := `{"key":"k","value":{"stringValue":"1"}}`
	twice := once + `,{"key":"other","value":{"stringValue":"1"}},{"key":"k","value":{"stringValue":"2"}}`
	w := NewWindow(defaultOptions())
	require.NoError(t, add(w, payload(once, once)))
	want := profiletest.ProtoOfCopy(t, w.Emit(""))
	for _, bad := range []struct {
		pd    pprofile.Profiles
		place string
	}{
		{payload(twice, once), "resource_profiles[0].resource"},
		{payload(once, twice), "resource_profiles[0].scope_profiles[0].scope"},
	} {
		err := add(w, bad.pd)
		require.ErrorContains(t, err, bad.place+` has two attributes with the key "k"; keys must be unique`)
	}
	// Keys that are not UTF-8 may become equal when they are repaired.
	pd := payloadtest.With(payloadtest.Interval(1, 1, 1), "k\xff", "1", `k\xff`, "2")
	require.ErrorContains(t, add(w, pd), "two attributes with the key")
	require.Equal(t, want, profiletest.ProtoOfCopy(t, w.Emit("")))
	// Keys that have become references are not equal for being empty.
	pd = payload(once+`,{"key":"other","value":{"stringValue":"1"}}`, "")
	profiletest.Proto(t, pd)
	require.NoError(t, add(w, pd))
}
