// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package sampletypes

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
)

// The first attribute with the key counts, if it is a string.
func TestTemporalityIsAString(t *testing.T) {
	d := pprofile.NewProfilesDictionary()
	d.StringTable().Append("", attrkey.Temporality)
	for _, value := range []any{nil, "other", int64(1), []byte("delta"), []any{"delta"}, "delta", "cumulative"} {
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(1)
		require.NoError(t, a.Value().FromRaw(value))
	}
	d.AttributeTable().At(1).SetKeyStrindex(7) // outside
	for want, indices := range map[string][]int32{"": {}, "delta": {-1, 99, 1, 5, 6}, "cumulative": {6, 5}} {
		attributes := pcommon.NewInt32Slice()
		attributes.FromRaw(indices)
		require.Equal(t, want, TemporalityOf(d, attributes))
	}
	for _, notString := range []int32{0, 2, 3, 4} {
		attributes := pcommon.NewInt32Slice()
		attributes.Append(notString, 5)
		require.Empty(t, TemporalityOf(d, attributes))
	}
}
