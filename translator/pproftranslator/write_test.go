// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// Integers of 0 without a unit and empty strings survive google/pprof's reader and ours,
// alone and beside others.
func TestEmptyLabelsSurvive(t *testing.T) {
	o := newOTLP()
	sp := o.scope()
	p := o.profile(sp, "a", "u")
	addValue(p, 0, 1, o.attr("zero", int64(0), ""))
	addValue(p, 0, 2, o.attr("zeros", []any{int64(0), int64(5), int64(0)}, ""))
	addValue(p, 0, 3, o.attr("unit", []any{int64(0), int64(7)}, "bytes"))
	addValue(p, 0, 4, o.attr("units", []any{
		"", "text", map[string]any{"value": int64(0)}, map[string]any{"value": int64(3), "unit": "bytes"},
	}, ""))
	addValue(p, 0, 5, o.attr("zero", int64(0), ""), o.attr("one", int64(1), ""), o.attr("text", "", ""))

	var written bytes.Buffer
	require.NoError(t, WritePprof(&written, convertOne(t, o)))
	data := written.Bytes()
	read, err := profile.ParseUncompressed(data)
	require.NoError(t, err)
	require.NoError(t, read.CheckValid())
	var labels []string
	for _, s := range read.Sample {
		labels = append(labels, fmt.Sprintf("%q %v %q", s.Label, s.NumLabel, s.NumUnit))
	}
	require.Equal(t, []string{
		`map[] map[zero:[0]] map["zero":[""]]`, `map[] map[zeros:[0 5 0]] map["zeros":["" "" ""]]`, `map[] map[unit:[0 7]] map["unit":["bytes" "bytes"]]`,
		`map["units":["" "text"]] map[units:[0 3]] map["units":["" "bytes"]]`, `map["text":[""]] map[one:[1] zero:[0]] map["zero":[""]]`,
	}, labels)

	back, err := (&Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	options := expand.Options{IgnoreEntities: true}
	require.Empty(t, expand.Diff(expand.Normalize(profiletest.Expand(t, o.Profiles), options), expand.Normalize(profiletest.Expand(t, back), options)))
}

func TestWritePprofChangesNothing(t *testing.T) {
	r := profiletest.NewRand(profiletest.Seed(t))
	for range profiletest.Rounds(t, 200, 5000) {
		p := profiletest.GeneratePprof(r)
		before := profiletest.Pprof(t, p)
		var written bytes.Buffer
		require.NoError(t, WritePprof(&written, p))
		require.Equal(t, before, profiletest.Pprof(t, p))
		read, err := profile.ParseUncompressed(written.Bytes())
		require.NoError(t, err)
		require.Empty(t, expand.Diff(expand.Pprof(p), expand.Pprof(read)))
	}
}
