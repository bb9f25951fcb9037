// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"cmp"
	"fmt"
	"math/big"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// Small returns a payload of two profiles that uses each table with two entries or
// more besides index 0.
func Small(tb testing.TB) pprofile.Profiles {
	tb.Helper()
	mapping := expand.Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/app", Attributes: []expand.Attribute{{Key: "process.executable.build_id.gnu", Value: "abc"}}}
	leaf := &expand.Frame{Address: 0x1100, Mapping: mapping, Lines: []expand.Line{{Function: "leaf", Filename: "a.go", Line: 7}}}
	root := &expand.Frame{Address: 0x1200, Mapping: mapping, Lines: []expand.Line{{Function: "root", Filename: "a.go", Line: 9}}}
	header := expand.Profile{
		Resource: expand.Entity{Attributes: []expand.Attribute{{Key: "service.name", Value: "checkout"}}},
		Scope:    expand.Entity{Name: "test", Attributes: []expand.Attribute{{Key: "kind", Value: "cpu"}}},
		Type:     "cpu", Unit: "nanoseconds",
		Time: 1000, Duration: 100,
	}
	values, timed := header, header
	values.Shape = expand.ShapeValues
	values.Samples = []*expand.Sample{
		{Stack: []*expand.Frame{leaf, root}, Attributes: []expand.Attribute{{Key: "thread", Value: int64(1)}}, Sum: big.NewInt(10)},
		{Stack: []*expand.Frame{root}, Attributes: []expand.Attribute{{Key: "thread", Value: "1"}}, Sum: big.NewInt(5), Link: "0102030405060708090a0b0c0d0e0f10/0102030405060708"},
	}
	timed.Shape = expand.ShapeBoth
	timed.Samples = []*expand.Sample{
		{Stack: []*expand.Frame{root}, Sum: big.NewInt(3), Points: []expand.Point{{Timestamp: 1001, Value: 1}, {Timestamp: 1002, Value: 2}}},
		{Stack: []*expand.Frame{leaf}, Sum: big.NewInt(3), Points: []expand.Point{{Timestamp: 1003, Value: 3}}, Link: "0102030405060708090a0b0c0d0e0f10/0000000000000001"},
	}
	pd, err := expand.Build([]expand.Profile{values, timed})
	require.NoError(tb, err)
	return pd
}

// pprofOf returns a pprof whose one sample has these values.
func pprofOf(binary string, types []*profile.ValueType, values ...int64) *profile.Profile {
	mapping := &profile.Mapping{ID: 1, Start: 0x1000, Limit: 0x9000, File: binary}
	function := &profile.Function{ID: 1, Name: "main.work", SystemName: "main.work", Filename: "work.go"}
	location := &profile.Location{ID: 1, Mapping: mapping, Address: 0x1234, Line: []profile.Line{{Function: function, Line: 7}}}
	return &profile.Profile{
		SampleType: types,
		TimeNanos:  1_700_000_000_000_000_000,
		Mapping:    []*profile.Mapping{mapping},
		Function:   []*profile.Function{function},
		Location:   []*profile.Location{location},
		Sample:     []*profile.Sample{{Location: []*profile.Location{location}, Value: values}},
	}
}

// CPUPprof returns a small CPU profile of ten seconds, whose one sample has this value and ten milliseconds for each, in a
// binary of this name.
func CPUPprof(binary string, value int64) *profile.Profile {
	p := pprofOf(binary, []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}, value, value*10_000_000)
	p.PeriodType, p.Period, p.DurationNanos = &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, 10_000_000, 10_000_000_000
	return p
}

// HeapPprof returns a small heap profile as Go makes it, whose one sample has these
// values.
func HeapPprof(allocObjects, allocSpace, inuseObjects, inuseSpace int64) *profile.Profile {
	p := pprofOf("/bin/app", []*profile.ValueType{
		{Type: "alloc_objects", Unit: "count"},
		{Type: "alloc_space", Unit: "bytes"},
		{Type: "inuse_objects", Unit: "count"},
		{Type: "inuse_space", Unit: "bytes"},
	}, allocObjects, allocSpace, inuseObjects, inuseSpace)
	p.DefaultSampleType, p.PeriodType, p.Period = "inuse_space", &profile.ValueType{Type: "space", Unit: "bytes"}, 524288
	return p
}

// Sums returns the sum of all values of pprofs by sample type, "type/unit", without those that are 0.
func Sums(pprofs ...*profile.Profile) map[string]int64 {
	sums := map[string]int64{}
	for _, p := range pprofs {
		for i, t := range p.SampleType {
			key := t.Type + "/" + t.Unit
			for _, s := range p.Sample {
				sums[key] += s.Value[i]
			}
			if sums[key] == 0 {
				delete(sums, key)
			}
		}
	}
	return sums
}

// Demangled is how the symbols of generated profiles are shown.
func Demangled(symbol string) string { return strings.ReplaceAll(symbol, "_Z4mainv", "main") }

// StackOf returns the names of the frames of a sample from the root on: functions, or else addresses.
func StackOf(s *profile.Sample) (names []string) {
	for _, l := range slices.Backward(s.Location) {
		address := fmt.Sprintf("0x%x", l.Address)
		switch {
		case l.Mapping != nil && l.Mapping.File != "":
			address = fmt.Sprintf("[%s] %s", path.Base(l.Mapping.File), address)
		case l.Address == 0:
			address = "[unknown]"
		}
		for _, line := range slices.Backward(l.Line) {
			f := cmp.Or(line.Function, &profile.Function{})
			names = append(names, cmp.Or(f.Name, Demangled(f.SystemName), address))
		}
		if len(l.Line) == 0 {
			names = append(names, address)
		}
	}
	return names
}
