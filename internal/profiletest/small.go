// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"math/big"
	"testing"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Small returns a payload of two profiles that uses each table with two entries or
// more besides index 0.
func Small(tb testing.TB) pprofile.Profiles {
	tb.Helper()
	mapping := Mapping{Start: 0x1000, Limit: 0x9000, File: "/bin/app", Attributes: []Attribute{{Key: "build", Value: "abc"}}}
	leaf := &Frame{Address: 0x1100, Mapping: mapping, Lines: []Line{{Function: "leaf", Filename: "a.go", Line: 7}}}
	root := &Frame{Address: 0x1200, Mapping: mapping, Lines: []Line{{Function: "root", Filename: "a.go", Line: 9}}}
	header := Expanded{
		Resource: Entity{Attributes: []Attribute{{Key: "service.name", Value: "checkout"}}},
		Scope:    Entity{Name: "test", Attributes: []Attribute{{Key: "kind", Value: "cpu"}}},
		Type:     "cpu", Unit: "nanoseconds",
		Time: 1000, Duration: 100,
	}
	values, timed := header, header
	values.Shape = ShapeValues
	values.Samples = []*Sample{
		{Stack: []*Frame{leaf, root}, Attributes: []Attribute{{Key: "thread", Value: int64(1)}}, Sum: big.NewInt(10)},
		{Stack: []*Frame{root}, Attributes: []Attribute{{Key: "thread", Value: "1"}}, Sum: big.NewInt(5), Link: "0102030405060708090a0b0c0d0e0f10/0102030405060708"},
	}
	timed.Shape = ShapeBoth
	timed.Samples = []*Sample{
		{Stack: []*Frame{root}, Sum: big.NewInt(3), Points: []Point{{1001, 1}, {1002, 2}}},
		{Stack: []*Frame{leaf}, Sum: big.NewInt(3), Points: []Point{{1003, 3}}, Link: "0102030405060708090a0b0c0d0e0f10/0000000000000001"},
	}
	pd, err := Build([]Expanded{values, timed})
	if err != nil {
		tb.Fatal(err)
	}
	return pd
}
