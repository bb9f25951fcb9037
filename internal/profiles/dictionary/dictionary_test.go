// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestBytesThatAreNotUTF8AreEscaped_R9(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "\xff": `\xff`, "\xe4\xb8": `\xe4\xb8`, "ä\xe4\xb8世": `ä\xe4\xb8世`, "\uFFFD\x80": "\uFFFD" + `\x80`,
		"half \xed\xa0\xbd": `half \xed\xa0\xbd`,
	} {
		assert.Equal(t, want, ValidUTF8(text))
		assert.Equal(t, len(want), ValidSize([]byte(text)))
		assert.Equal(t, want, ValidUTF8(want))
	}
}

// A table agrees with a map through any sequence of additions and resets.
func TestTableAgreesWithMap(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		var table table
		var order []string
		known := map[string]int32{}
		for range 2000 {
			switch n := r.IntN(100); {
			case n == 0:
				table.reset()
				clear(known)
				order = order[:0]
			case n == 1:
				table.grow(r.IntN(50), r.IntN(500))
			default:
				entry := fmt.Sprint(10 + r.IntN(700))[r.IntN(2):]
				want, ok := known[entry]
				if !ok {
					want = int32(len(order))
					known[entry] = want
					order = append(order, entry)
				}
				n, added := table.intern([]byte(entry))
				require.Equal(t, want, n)
				require.Equal(t, !ok, added)
			}
			require.Equal(t, len(order), table.len())
		}
		for i, entry := range order {
			require.Equal(t, entry, string(table.at(int32(i))))
		}
		used := 0
		for _, s := range table.index.slots {
			if s != 0 {
				used++
			}
		}
		require.Equal(t, table.index.used, used)
		require.Equal(t, len(order), used, "each entry has one place")
	}
}

// Values that are equal, and that are not, by the rules of the format.
func TestEqualValuesAreOneEntry(t *testing.T) {
	nan := math.Float64frombits(0x7ff8000000000001)
	otherNaN := math.Float64frombits(0x7ff8000000000002)
	list := func(keys string, values map[string]any) pcommon.Value { // in the order of the keys
		v := pcommon.NewValueMap()
		for _, key := range keys {
			assert.NoError(t, v.Map().PutEmpty(string(key)).FromRaw(values[string(key)]))
		}
		return v
	}
	ab := map[string]any{"a": int64(1), "b": math.Copysign(0, -1)}
	classes := [][]any{
		{nil}, {""}, {"1"}, {int64(1)}, {true}, {false}, {1.0}, {int64(0)},
		{0.0, math.Copysign(0, -1)}, {nan, nan}, {otherNaN}, {[]byte("1")},
		{[]any{}}, {[]any{"1", int64(1)}}, {[]any{int64(1), "1"}}, {[]any{[]any{"1"}}},
		{map[string]any{}}, {map[string]any{"a": int64(1), "b": 0.0}, list("ab", ab), list("ba", ab)}, {map[string]any{"a": "1", "b": 0.0}},
		{"\xff", `\xff`}, {"\xfe"}, {"\xff\xfe"}, {"\uFFFD"},
	}
	tables := New()
	seen := map[int32]int{}
	for n, class := range classes {
		for i, raw := range class {
			v, built := raw.(pcommon.Value)
			if !built {
				v = pcommon.NewValueEmpty()
				require.NoError(t, v.FromRaw(raw))
			}
			index := tables.Attribute(1, 0, AppendPdata(nil, v))
			if i == 0 {
				_, taken := seen[index]
				require.Falsef(t, taken, "class %d is taken for class %d", n, seen[index])
				seen[index] = n
			}
			require.Equalf(t, n, seen[index], "class %d, value %d", n, i)

			got := pcommon.NewValueEmpty()
			AppendPdata(nil, v).Write(got)
			require.Equal(t, AppendPdata(nil, v), AppendPdata(nil, got), "what is read is what was written")
		}
	}
}

func TestAttributesAreSets(t *testing.T) {
	tables := New()
	var attributes []int32
	for _, key := range []string{"a", "b", "c"} {
		attributes = append(attributes, tables.Attribute(tables.String(key), 0, Value(nil).AppendInt(1)))
	}
	abc := tables.AttributeSet(attributes)
	slices.Reverse(attributes)
	require.Equal(t, abc, tables.AttributeSet(append(attributes, attributes[0])))
	require.Equal(t, tables.Location(&Location{Address: 1, Attributes: attributes}),
		tables.Location(&Location{Address: 1, Attributes: []int32{attributes[1], attributes[0], attributes[2]}}))
	require.NotEqual(t, tables.Location(&Location{Address: 1, Lines: []Line{{Line: 1}, {Line: 2}}}),
		tables.Location(&Location{Address: 1, Lines: []Line{{Line: 2}, {Line: 1}}}))
	require.NoError(t, tables.Err())
}

func TestFullTableIsAnError(t *testing.T) {
	defer func(entries, content int) { maxEntries, maxContent = entries, content }(maxEntries, maxContent)
	maxEntries, maxContent = 10, 1000
	for _, intern := range []func(*Tables, int) int32{
		func(t *Tables, i int) int32 { return t.String(fmt.Sprint(i)) },
		func(t *Tables, i int) int32 { return t.Mapping(Mapping{MemoryStart: uint64(i)}) },
		func(t *Tables, i int) int32 { return t.Location(&Location{Address: uint64(i)}) },
		func(t *Tables, i int) int32 { return t.Function(Function{StartLine: int64(i)}) },
		func(t *Tables, i int) int32 { return t.Link([16]byte{byte(i)}, [8]byte{1}) },
		func(t *Tables, i int) int32 { return t.Attribute(0, 0, Value(nil).AppendInt(int64(i))) },
		func(t *Tables, i int) int32 { return t.Stack(make([]int32, i)) },
	} {
		tables := New()
		for i := 1; i < 10; i++ {
			require.EqualValues(t, i, intern(tables, i))
		}
		require.NoError(t, tables.Err())
		require.EqualValues(t, 5, intern(tables, 5), "what is there is found in a full table")
		require.Zero(t, intern(tables, 10))
		require.ErrorIs(t, tables.Err(), ErrFull)
		tables.Reset()
		require.NoError(t, tables.Err())
		require.Zero(t, tables.String(strings.Repeat("x", 1001)))
		require.ErrorIs(t, tables.Err(), ErrFull)
	}
}

// Write writes each entry at its index: what is interned from the written dictionary is there already, where it was.
func TestWriteKeepsIndices(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 10, 1000)) {
		tables := New()
		r := Remap{KeepPartialLinks: true}
		for n := range uint64(3) {
			pd := profiletest.GenerateProfiles(profiletest.NewRand(seed + n/2))
			for _, r.Granularity = range []Granularity{ByAddress, ByLine, ByFunction} {
				r.Reset(pd.Dictionary(), tables)
				for p := range sampletypes.ProfilesOf(pd) {
					for _, s := range p.Samples().All() {
						r.Sample(s, nil)
					}
				}
			}
		}
		written := pprofile.NewProfiles().Dictionary()
		tables.Write(written)
		lengths := lengthsOf(written)
		for i, table := range tables.all() {
			if table != &tables.sets {
				require.Equal(t, table.len(), *lengths.all()[i])
			}
		}
		r.Granularity = ByAddress
		r.Reset(written, tables)
		for _, kind := range []struct {
			length int
			intern func(i int32) int32
		}{
			{lengths.strings, r.String}, {lengths.attributes, r.Attribute}, {lengths.mappings, r.Mapping}, {lengths.functions, r.Function},
			{lengths.locations, r.Location}, {lengths.links, r.Link}, {lengths.stacks, r.Stack},
		} {
			for i := range int32(kind.length) {
				require.Equal(t, i, kind.intern(i))
			}
		}
		for i, s := range written.StringTable().All() {
			require.Equal(t, tables.StringAt(int32(i)), s)
		}
		require.NoError(t, tables.Err())
	}
}

// Samples agree with a map, whether stacks are dense or not.
func TestSamplesAgreeWithMap(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 12, 600)) {
		r := rand.New(rand.NewPCG(seed, 2))
		var s Samples
		known := map[[3]int32]int32{}
		for round := range 3 {
			s.Reset()
			clear(known)
			spread := int32(1) << (4 * ((seed + uint64(round)) % 6))
			for range 3000 {
				id := [3]int32{r.Int32N(200) * spread, r.Int32N(3), r.Int32N(2)}
				if r.IntN(3) == 0 {
					id[0] = int32(s.Len())
				}
				want, ok := known[id]
				if !ok {
					want = int32(len(known))
					known[id] = want
				}
				require.Equal(t, want, s.Number(id[0], id[1], id[2]))
			}
			require.Equal(t, len(known), s.Len())
			for id, n := range known {
				stack, set, link := s.Identity(n)
				require.Equal(t, [3]int32{stack, set, link}, id)
			}
		}
	}
}

// A recording may have thousands of small chunks after a large one, and Grow is called for each.
func TestGrowingOftenTakesLittleMemory(t *testing.T) {
	tables := New()
	add := func(n int) {
		tables.Grow(Room{Strings: n, Functions: n, Locations: n, Stacks: n})
		for range n {
			function := tables.Function(Function{Name: tables.String(fmt.Sprint(tables.strings.len()))})
			tables.Stack([]int32{tables.Location(&Location{Lines: []Line{{Function: function}}})})
		}
	}
	large := profiletest.AllocatedBy(func() { add(10_000) })
	small := profiletest.AllocatedBy(func() {
		for range 5000 {
			add(2)
		}
	})
	require.Less(t, small, 6*large)
}
