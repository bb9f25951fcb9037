// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// A View of any size ends a search for what it does not have, whatever is added later.
func TestViewEndsSearchesWhileTablesGrow(t *testing.T) {
	for size := range byte(40) {
		tables := New(0)
		for i := range size {
			tables.Link([16]byte{1}, [8]byte{1, i})
		}
		view := tables.View()
		for i := range byte(40) {
			tables.Link([16]byte{2}, [8]byte{2, i})
		}
		absent := pprofile.NewProfilesDictionary()
		for i := range byte(10) {
			link := absent.LinkTable().AppendEmpty()
			link.SetTraceID([16]byte{3})
			link.SetSpanID([8]byte{3, i})
		}
		var r Remap
		r.Find(absent, view)
		require.Negative(t, r.Link(1))
		require.True(t, r.IsValid())
	}
}
