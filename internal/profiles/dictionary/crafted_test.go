// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// probesOf is how many slots are looked at to find an entry, on average.
func probesOf(x *index) float64 {
	n, total := uint32(len(x.slots)), 0
	for at, s := range x.slots {
		if s != 0 {
			total += int((uint32(at)+n-home(uint32(s>>32), x.slots))%n) + 1
		}
	}
	return float64(total) / float64(max(1, x.used))
}

// requireSpread adds entries to tables: crafted ones take at most three times the probes of random ones.
func requireSpread[E any](t *testing.T, table func() (*index, func(E)), random func(int) E, crafted map[string]func(int) E) {
	t.Helper()
	probes := func(of func(int) E) float64 {
		index, add := table()
		for i := range manyEntries {
			add(of(i))
		}
		return probesOf(index)
	}
	most := 3 * probes(random)
	for name, of := range crafted {
		require.Less(t, probes(of), most, name)
	}
}

const manyEntries = 1 << 14

// Entries that collide under common hashes are spread. The hashes are keyed anew in each process, so that nobody can
// make entries that collide under these.
func TestCraftedEntriesDoNotCollide_P6(t *testing.T) {
	const n = manyEntries
	r := rand.New(rand.NewPCG(6, 6))
	requireSpread(t, func() (*index, func(string)) {
		tables := New()
		return &tables.strings.index, func(s string) { tables.String(s) }
	}, func(int) string { return fmt.Sprintf("%016x", r.Uint64()) }, map[string]func(int) string{
		// "Aa" and "BB" are equal under a polynomial hash of base 31, so all of these are.
		"polynomial": func(i int) (s string) {
			for bit := range 14 {
				s += [...]string{"Aa", "BB"}[i>>bit&1]
			}
			return s
		},
		"zeros": func(i int) string { return fmt.Sprintf("%0128d", i) },
	})
	requireSpread(t, func() (*index, func([]int32)) {
		table := &table{}
		return &table.index, func(stack []int32) { table.intern(bytesOf(stack)) }
	}, func(int) []int32 { return []int32{r.Int32(), r.Int32(), r.Int32()} }, map[string]func(int) []int32{
		"equal sums":  func(i int) []int32 { return []int32{int32(i), int32(n - i), 7} },
		"equal xors":  func(i int) []int32 { return []int32{int32(i), int32(i), 7} },
		"high bits":   func(i int) []int32 { return []int32{int32(i) << 16, 0} },
		"long zeros":  func(i int) []int32 { return make([]int32, i%1024+1) },
		"consecutive": func(i int) []int32 { return []int32{int32(i), int32(i + 1)} },
	})
	requireSpread(t, func() (*index, func([]Line)) {
		tables := New()
		return &tables.locations.index, func(lines []Line) { tables.Location(&Location{Lines: lines}) }
	}, func(int) []Line { return []Line{{Function: 1}, {Function: r.Int32(), Line: r.Int64()}} }, map[string]func(int) []Line{
		"equal xors": func(i int) []Line { return []Line{{Function: 1, Column: int64(i)}, {Line: int64(i ^ 7)}} },
		"equal sums": func(i int) []Line { return []Line{{Function: 1, Line: int64(i), Column: int64(n - i)}} },
		"lines as columns": func(i int) (lines []Line) {
			for bit := range 14 {
				lines = append(lines, [][]Line{{{Function: 1, Line: 1, Column: 2}}, {{Function: 1, Line: 1}, {Line: 2}}}[i>>bit&1]...)
			}
			return lines
		},
	})
	requireSpread(t, func() (*index, func([3]int32)) {
		samples := &Samples{}
		return &samples.index, func(id [3]int32) { samples.Number(id[0], id[1], id[2]) }
	}, func(int) [3]int32 { return [3]int32{r.Int32N(4), r.Int32(), r.Int32()} }, map[string]func(int) [3]int32{
		"sets":        func(i int) [3]int32 { return [3]int32{1, int32(i), 0} },
		"links":       func(i int) [3]int32 { return [3]int32{1, 0, int32(i)} },
		"equal sums":  func(i int) [3]int32 { return [3]int32{1, int32(i), int32(n - i)} },
		"equal xors":  func(i int) [3]int32 { return [3]int32{1, int32(i), int32(i)} },
		"high bits":   func(i int) [3]int32 { return [3]int32{1, int32(i) << 16, 0} },
		"far stacks":  func(i int) [3]int32 { return [3]int32{int32(uint32(i) << 17 >> 1), 0, 0} },
		"equal lower": func(i int) [3]int32 { return [3]int32{1, int32(i) << 8, int32(i) << 20} },
	})
}
