// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package processes

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func randomRows(r *rand.Rand, n int) []Row {
	rows := map[uint64]Row{}
	for range n {
		start := r.Uint64N(1 << 61)
		length := r.Uint64N(1 << r.IntN(50))
		hash := 1 + r.Uint64N(1<<r.IntN(64))
		rows[hash] = Row{Hash: hash, Start: start, End: start + length, Covered: r.Uint64N(length + 1), Value: int64(r.Uint64()) >> r.IntN(64), Profiles: r.IntN(9), Processes: 1}
	}
	var sorted []Row
	for _, row := range rows {
		sorted = append(sorted, row)
	}
	slices.SortFunc(sorted, func(a, b Row) int { return cmp.Compare(a.Hash, b.Hash) })
	return sorted
}

func TestTablesAreReadAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		rows := randomRows(r, r.IntN(40))
		if r.IntN(2) == 0 {
			rows = slices.Insert(rows, 0, Row{Hash: Rest, Start: 5, End: 9, Covered: 4, Value: -1, Profiles: 3, Processes: 77})
		}
		time := r.Uint64N(1 << 62)
		read, err := Read(Append(nil, rows, time), time)
		require.NoError(t, err)
		require.Len(t, read, len(rows))
		if len(rows) > 0 {
			require.Equal(t, rows, read)
		}
	}
}

func TestARowTakesAboutThirtyBytes(t *testing.T) {
	const time = 1_800_000_000e9
	var rows []Row
	for i := range uint64(100) {
		rows = append(rows, Row{Hash: 1<<60 + i<<40, Start: time + i*1e8, End: time + 60e9, Covered: 60e9 - i*1e8, Value: 37_123_456_789, Profiles: 4, Processes: 1})
	}
	assert.LessOrEqual(t, len(Append(nil, rows, time)), 100*30)
}

func TestMalformedTablesAreErrors(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	table := Append(nil, randomRows(r, 20), 1000)
	for i := range table {
		if _, err := Read(table[:i], 1000); err == nil {
			require.Equal(t, byte(version), table[0])
		}
		flipped := slices.Clone(table)
		flipped[i] ^= byte(1 + r.IntN(255))
		rows, err := Read(flipped, 1000)
		for _, row := range rows {
			require.NoError(t, err)
			require.LessOrEqual(t, row.Covered, row.End-row.Start)
		}
	}
	for _, table := range [][]byte{nil, {}, {9}, {version, 1}, append([]byte{version}, make([]byte, 5000)...)} {
		_, err := Read(table, 0)
		assert.Error(t, err)
	}
}

// The order in which tables are joined does not matter, and nothing is lost.
func TestJoinAddsUpInAnyOrder(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		var tables [][]Row
		var value int64
		profiles := 0
		for range 1 + r.IntN(6) {
			rows := randomRows(r, r.IntN(150))
			for i := range rows {
				rows[i].Value >>= 16
				value += rows[i].Value
				profiles += rows[i].Profiles
			}
			tables = append(tables, rows)
		}
		var want []Row
		for round := range 4 {
			r.Shuffle(len(tables), func(i, j int) { tables[i], tables[j] = tables[j], tables[i] })
			var joined []Row
			for _, rows := range tables {
				joined = Join(joined, rows)
			}
			require.LessOrEqual(t, len(joined), MaxRows+1)
			var sum int64
			count := 0
			for _, row := range joined {
				sum += row.Value
				count += row.Profiles
				require.LessOrEqual(t, row.Covered, row.End-row.Start)
			}
			require.Equal(t, value, sum, "seed %d", seed)
			require.Equal(t, profiles, count, "seed %d", seed)
			hashes := func(rows []Row) (h []uint64) {
				for _, row := range rows {
					h = append(h, row.Hash)
				}
				return h
			}
			if round == 0 {
				want = joined
			}
			require.Equal(t, hashes(want), hashes(joined), "seed %d", seed)
		}
	}
}

func TestProfilesOfOneSourceCoverItsTimeOnce(t *testing.T) {
	row := Row{Hash: 7, Start: 100, End: 160, Covered: 60, Value: 5, Profiles: 1, Processes: 1}
	joined := Join([]Row{row}, []Row{row})
	assert.Equal(t, []Row{{Hash: 7, Start: 100, End: 160, Covered: 60, Value: 10, Profiles: 1, Processes: 1}}, joined)
	next := row
	next.Start, next.End = 160, 220
	assert.Equal(t, []Row{{Hash: 7, Start: 100, End: 220, Covered: 120, Value: 10, Profiles: 2, Processes: 1}}, Join([]Row{row}, []Row{next}))
}

func TestHashOfAResource(t *testing.T) {
	build := func(pairs ...any) pcommon.Map {
		m := pcommon.NewMap()
		for i := 0; i < len(pairs); i += 2 {
			require.NoError(t, m.PutEmpty(pairs[i].(string)).FromRaw(pairs[i+1]))
		}
		return m
	}
	first := HashResource(build("a", "x", "b", int64(2)))
	assert.Equal(t, first, HashResource(build("b", int64(2), "a", "x")), "the order does not matter")
	seen := map[uint64]int{}
	for i, m := range []pcommon.Map{
		build(), build("a", "x"), build("a", "x", "b", int64(2)), build("a", "x", "b", "2"), build("a", "x", "b", 2.0), build("ab", "x"), build("a", "bx"),
		build("a", []any{"x"}), build("a", []any{"x", "y"}), build("a", []any{[]any{"x"}, "y"}), build("a", map[string]any{"x": "y"}), build("a", true), build("a", false),
		build("a", []byte("x")), build("a", nil), build("a", math.NaN()),
	} {
		hash := HashResource(m)
		assert.NotZero(t, hash)
		before, found := seen[hash]
		assert.False(t, found, "%d and %d", i, before)
		seen[hash] = i
	}
}

func FuzzRead(f *testing.F) {
	f.Add(Append(nil, randomRows(rand.New(rand.NewPCG(5, 6)), 10), 1000), uint64(1000))
	f.Fuzz(func(t *testing.T, table []byte, time uint64) {
		rows, err := Read(table, time)
		if err != nil {
			return
		}
		again, err := Read(Append(nil, rows, time), time)
		require.NoError(t, err)
		require.Equal(t, rows, again)
	})
}
