// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

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
