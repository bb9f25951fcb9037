// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import "github.com/google/pprof/profile"

// HeapPprof returns a small heap profile as Go makes it, whose one sample has these
// values.
func HeapPprof(allocObjects, allocSpace, inuseObjects, inuseSpace int64) *profile.Profile {
	mapping := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: "/bin/app"}
	function := &profile.Function{ID: 1, Name: "main.work", SystemName: "main.work", Filename: "work.go"}
	location := &profile.Location{ID: 1, Mapping: mapping, Address: 0x1234, Line: []profile.Line{{Function: function, Line: 7}}}
	return &profile.Profile{
		SampleType: []*profile.ValueType{
			{Type: "alloc_objects", Unit: "count"},
			{Type: "alloc_space", Unit: "bytes"},
			{Type: "inuse_objects", Unit: "count"},
			{Type: "inuse_space", Unit: "bytes"},
		},
		DefaultSampleType: "inuse_space",
		PeriodType:        &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:            524288,
		TimeNanos:         1_700_000_000_000_000_000,
		Mapping:           []*profile.Mapping{mapping},
		Function:          []*profile.Function{function},
		Location:          []*profile.Location{location},
		Sample: []*profile.Sample{{
			Location: []*profile.Location{location},
			Value:    []int64{allocObjects, allocSpace, inuseObjects, inuseSpace},
		}},
	}
}
