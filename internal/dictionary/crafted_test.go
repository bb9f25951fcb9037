// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// probesOf is how many slots are looked at to find an entry, on average.
func probesOf(x *Index) float64 {
	n, total := uint32(len(x.slots)), 0
	for at, s := range x.slots {
		if s != 0 {
			total += int((uint32(at)+n-home(uint32(s>>32), x.slots))%n) + 1
		}
	}
	return float64(total) / float64(max(1, x.used))
}

// Entries that collide under common hashes take at most three times the
// probes of random ones. The hashes are keyed anew in each process, so that nobody can
// make entries that collide under these.
func TestCraftedEntriesDoNotCollide_P6(t *testing.T) {
	const n = 1 << 14
	r := rand.New(rand.NewPCG(6, 6))
	// "Aa" and "BB" are equal under a polynomial hash of base 31, so all of these are.
	polynomial := func(i int) (s string) {
		for bit := range 14 {
			s += [...]string{"Aa", "BB"}[i>>bit&1]
		}
		return s
	}
	strings := func(of func(int) string) float64 {
		tables := New(0)
		for i := range n {
			tables.String(of(i))
		}
		return probesOf(&tables.strings.index)
	}
	random := strings(func(int) string { return fmt.Sprintf("%016x", r.Uint64()) })
	require.Less(t, strings(polynomial), 3*random)
	require.Less(t, strings(func(i int) string { return fmt.Sprintf("%0128d", i) }), 3*random)

	stacks := func(of func(int) []int32) float64 {
		var table table
		for i := range n {
			table.intern(n, bytesOf(of(i)))
		}
		return probesOf(&table.index)
	}
	random = stacks(func(int) []int32 { return []int32{r.Int32(), r.Int32(), r.Int32()} })
	for name, of := range map[string]func(int) []int32{
		"equal sums":  func(i int) []int32 { return []int32{int32(i), int32(n - i), 7} },
		"equal xors":  func(i int) []int32 { return []int32{int32(i), int32(i), 7} },
		"high bits":   func(i int) []int32 { return []int32{int32(i) << 16, 0} },
		"long zeros":  func(i int) []int32 { return make([]int32, i%1024+1) },
		"consecutive": func(i int) []int32 { return []int32{int32(i), int32(i + 1)} },
	} {
		require.Less(t, stacks(of), 3*random, name)
	}

	locations := func(of func(int) []Line) float64 {
		tables := New(0)
		tables.StartWriting(pprofile.NewProfiles().Dictionary())
		for i := range n {
			tables.Location(&Location{Lines: of(i)})
		}
		return probesOf(&tables.locations.index)
	}
	random = locations(func(int) []Line { return []Line{{Function: 1}, {Function: r.Int32(), Line: r.Int64()}} })
	for name, of := range map[string]func(int) []Line{
		"equal xors": func(i int) []Line { return []Line{{Function: 1, Column: int64(i)}, {Line: int64(i ^ 7)}} },
		"equal sums": func(i int) []Line { return []Line{{Function: 1, Line: int64(i), Column: int64(n - i)}} },
		"lines as columns": func(i int) (lines []Line) {
			for bit := range 14 {
				lines = append(lines, [][]Line{{{Function: 1, Line: 1, Column: 2}}, {{Function: 1, Line: 1}, {Line: 2}}}[i>>bit&1]...)
			}
			return lines
		},
	} {
		require.Less(t, locations(of), 3*random, name)
	}

	samples := func(of func(int) (stack, set, link int32)) float64 {
		var s Samples
		for i := range n {
			s.Number(of(i))
		}
		return probesOf(&s.index)
	}
	random = samples(func(int) (int32, int32, int32) { return r.Int32N(4), r.Int32(), r.Int32() })
	for name, of := range map[string]func(int) (int32, int32, int32){
		"sets":        func(i int) (int32, int32, int32) { return 1, int32(i), 0 },
		"links":       func(i int) (int32, int32, int32) { return 1, 0, int32(i) },
		"equal sums":  func(i int) (int32, int32, int32) { return 1, int32(i), int32(n - i) },
		"equal xors":  func(i int) (int32, int32, int32) { return 1, int32(i), int32(i) },
		"high bits":   func(i int) (int32, int32, int32) { return 1, int32(i) << 16, 0 },
		"far stacks":  func(i int) (int32, int32, int32) { return int32(uint32(i) << 17 >> 1), 0, 0 },
		"equal lower": func(i int) (int32, int32, int32) { return 1, int32(i) << 8, int32(i) << 20 },
	} {
		require.Less(t, samples(of), 3*random, name)
	}
}
