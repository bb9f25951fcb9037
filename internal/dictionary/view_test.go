// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
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

// Entries of a large View are found in any order, also those that are looked up together.
func TestFindAllInLargeView(t *testing.T) {
	const size = 30_000
	tables := New(0)
	for i := range size {
		tables.String(fmt.Sprint("string ", i))
	}
	require.GreaterOrEqual(t, len(tables.View().strings.slots), largeIndex)
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		source := pprofile.NewProfilesDictionary()
		source.StringTable().Append("")
		want := []int32{0}
		for len(want) < 1000 {
			first, in := random.Int32N(size-100), random.IntN(2) == 0
			for n := range 1 + random.Int32N(100) { // a run of neighbours, or of absent strings
				if in {
					source.StringTable().Append(fmt.Sprint("string ", first+n))
					want = append(want, first+n+1)
				} else {
					source.StringTable().Append(fmt.Sprint("absent ", first+n))
					want = append(want, absent)
				}
			}
		}
		var r Remap
		r.Find(source, tables.View())
		r.FindAll()
		for i, to := range want {
			require.Equal(t, to, r.String(int32(i)), source.StringTable().At(i))
		}
	}
}

// Long strings are not copied to be looked up together.
func TestFindAllInLargeViewCopiesNoLongStrings(t *testing.T) {
	tables := New(0)
	for i := range 30_000 {
		tables.String(fmt.Sprint("string ", i))
	}
	source := pprofile.NewProfilesDictionary()
	for i := range 60 {
		source.StringTable().Append(strings.Repeat("x", 1<<18) + fmt.Sprint(i))
	}
	view := tables.View()
	var r Remap
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.Find(source, view)
	r.FindAll()
	runtime.ReadMemStats(&after)
	require.Negative(t, r.String(59))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// A Remap that has looked up all entries of one dictionary checks the next one whole, too.
func TestUsedRemapChecksEntriesThatNothingRefersTo_P1(t *testing.T) {
	bad := pprofile.NewProfilesDictionary()
	bad.StringTable().Append("")
	bad.FunctionTable().AppendEmpty()
	bad.FunctionTable().AppendEmpty().SetNameStrindex(7)
	var r Remap
	for range 2 {
		r.Find(profiletest.OneOfEach().Dictionary(), New(0).View())
		r.FindAll()
		require.True(t, r.IsValid())
		r.Find(bad, New(0).View())
		require.False(t, r.IsValid())
	}
}
