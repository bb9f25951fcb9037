// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Tables without a zero value, and empty ones, are read as what they hold.
func TestRemapWithoutZeroValues(t *testing.T) {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("first")
	pd.Dictionary().LocationTable().AppendEmpty().SetAddress(7)
	pd.Dictionary().StackTable().AppendEmpty().LocationIndices().Append(0)
	require.NoError(t, Check(pd))
	tables := New()
	var r Remap
	r.Reset(pd.Dictionary(), tables)
	require.Equal(t, "first", tables.StringAt(r.String(0)))
	require.Equal(t, tables.Stack([]int32{tables.Location(&Location{Address: 7})}), r.Stack(0))
	require.Zero(t, r.Mapping(0))
	require.Zero(t, r.Link(0))

	half := pprofile.NewProfiles()
	half.Dictionary().LinkTable().AppendEmpty()
	half.Dictionary().LinkTable().AppendEmpty().SetTraceID(pcommon.TraceID{1})
	r.Reset(half.Dictionary(), tables)
	require.Zero(t, r.Link(1), "a link without a span is none")
}
