// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
)

var (
	heap  = []Type{{"alloc_objects", "count"}, {"alloc_space", "bytes"}, {"inuse_objects", "count"}, {"inuse_space", "bytes"}}
	texts = []any{"alloc_objects/count", "alloc_space/bytes", "inuse_objects/count", "inuse_space/bytes"}
)

func TestWriteListsTypesOnlyIfOneHasNoProfile(t *testing.T) {
	for _, test := range []struct {
		name  string
		order []int
		want  map[string]any
	}{
		{"all", []int{3, 0, 1, 2}, map[string]any{OrderAttribute: []any{int64(3), int64(0), int64(1), int64(2)}}},
		{"two Profiles of each", []int{3, 0, 1, 2, 3, 0, 1, 2}, map[string]any{
			OrderAttribute: []any{int64(3), int64(0), int64(1), int64(2), int64(3), int64(0), int64(1), int64(2)},
		}},
		{"some", []int{1, 0}, map[string]any{OrderAttribute: []any{int64(1), int64(0)}, attrkey.SampleTypes: texts}},
		{"none", nil, map[string]any{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			scope := pcommon.NewMap()
			require.NoError(t, scope.FromRaw(map[string]any{OrderAttribute: "old", attrkey.SampleTypes: "old"}))
			Write(scope, heap, test.order)
			require.Equal(t, test.want, scope.AsRaw())
			if test.order == nil {
				return
			}
			var profiles []Type
			for _, at := range test.order {
				profiles = append(profiles, heap[at])
			}
			all, order := Read(scope, profiles)
			require.Equal(t, heap, all)
			require.Equal(t, test.order, order)
		})
	}
}

func TestTypesAndUnitsWithSlashesAreRestored(t *testing.T) {
	all := []Type{{"a/b", "c/d"}, {"", ""}, {"%2F", "%2F%"}, {"a", "µs"}}
	scope := pcommon.NewMap()
	Write(scope, all, []int{2})
	read, order := Read(scope, all[2:3])
	require.Equal(t, all, read)
	require.Equal(t, []int{2}, order)
}

func TestReadRejectsWhatDoesNotFit(t *testing.T) {
	for name, test := range map[string]struct {
		scope    map[string]any
		profiles []Type
	}{
		"no order":             {map[string]any{attrkey.SampleTypes: texts}, heap},
		"no array":             {map[string]any{OrderAttribute: "0123"}, heap},
		"other kinds":          {map[string]any{OrderAttribute: []any{"0", "1"}}, heap[:2]},
		"too long":             {map[string]any{OrderAttribute: []any{3, 0, 1, 2}}, heap[:2]},
		"too short":            {map[string]any{OrderAttribute: []any{0}}, heap},
		"a gap":                {map[string]any{OrderAttribute: []any{0, 2}}, heap[:2]},
		"negative":             {map[string]any{OrderAttribute: []any{0, -1}}, heap[:2]},
		"huge":                 {map[string]any{OrderAttribute: []any{0, int64(1) << 62}}, heap[:2]},
		"the largest":          {map[string]any{OrderAttribute: []any{0, int64(math.MaxInt64)}}, heap[:2]},
		"one index, two types": {map[string]any{OrderAttribute: []any{0, 0}}, heap[:2]},
		"outside the list":     {map[string]any{OrderAttribute: []any{0, 4}, attrkey.SampleTypes: texts}, heap[:2]},
		"another type":         {map[string]any{OrderAttribute: []any{1, 0}, attrkey.SampleTypes: texts}, heap[:2]},
		"no unit":              {map[string]any{OrderAttribute: []any{0}, attrkey.SampleTypes: []any{"samples"}}, []Type{{"samples", ""}}},
		"list of another kind": {map[string]any{OrderAttribute: []any{0}, attrkey.SampleTypes: "samples/count"}, []Type{{"samples", "count"}}},
		"too many":             {map[string]any{OrderAttribute: []any{0}, attrkey.SampleTypes: slices.Repeat([]any{"a/b"}, 1025)}, []Type{{"a", "b"}}},
		"no Profiles":          {map[string]any{OrderAttribute: []any{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			scope := pcommon.NewMap()
			require.NoError(t, scope.FromRaw(test.scope))
			all, order := Read(scope, test.profiles)
			require.Nil(t, all)
			require.Nil(t, order)
		})
	}
}

func TestProfileTypeIsTheAttributeOrThatOfTheSampleTypes(t *testing.T) {
	scope := pcommon.NewMap()
	for want, types := range map[string][]Type{
		"heap":          heap,
		"cpu":           {{"samples", "count"}, {"cpu", "nanoseconds"}},
		"wall":          {{"sample", "count"}, {"cpu", "nanoseconds"}, {"wall", "nanoseconds"}},
		"goroutine":     {{"goroutine", "count"}},
		"goroutineleak": {{"goroutineleak", "count"}},
		"":              {{"contentions", "count"}, {"delay", "nanoseconds"}},
	} {
		require.Equal(t, want, ProfileType(scope, types))
	}
	scope.PutStr(attrkey.ProfileType, "mutex")
	require.Equal(t, "mutex", ProfileType(scope, heap))
}

func TestValueOfASampleSaturates(t *testing.T) {
	s := pprofile.NewSample()
	assert.Zero(t, ValueOf(s))
	s.TimestampsUnixNano().Append(7, 8, 9)
	assert.EqualValues(t, 3, ValueOf(s))
	s.Values().Append(math.MaxInt64, 1, -5)
	assert.EqualValues(t, math.MaxInt64-5, ValueOf(s), "the sum before the last value saturates")
	s.Values().FromRaw([]int64{math.MinInt64, -1})
	assert.EqualValues(t, math.MinInt64, ValueOf(s))
}
