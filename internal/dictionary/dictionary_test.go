// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

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
				n, added := table.intern(math.MaxInt32, []byte(entry))
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

func TestZeroValuesAreFirst(t *testing.T) {
	tables := New(0)
	assert.Zero(t, tables.String(""))
	assert.Zero(t, tables.Mapping(Mapping{}))
	assert.Zero(t, tables.Location(&Location{}))
	assert.Zero(t, tables.Function(Function{}))
	assert.Zero(t, tables.Link([16]byte{}, [8]byte{}))
	assert.Zero(t, tables.Attribute(0, 0, nil))
	assert.Zero(t, tables.Stack(nil))
	assert.Zero(t, tables.AttributeSet(nil))
	pd := pprofile.NewProfiles()
	write(tables, pd)
	profiletest.RequireConforms(t, pd)
}

// Values that are equal, and that are not, by the rules of the format.
func TestEqualValuesAreOneEntry(t *testing.T) {
	value := func(build func(pcommon.Value)) pcommon.Value {
		v := pcommon.NewValueEmpty()
		build(v)
		return v
	}
	list := func(pairs ...any) pcommon.Value {
		return value(func(v pcommon.Value) {
			m := v.SetEmptyMap()
			for i := 0; i < len(pairs); i += 2 {
				assert.NoError(t, m.PutEmpty(pairs[i].(string)).FromRaw(pairs[i+1]))
			}
		})
	}
	array := func(elements ...any) pcommon.Value {
		return value(func(v pcommon.Value) { assert.NoError(t, v.FromRaw(elements)) })
	}
	nan := math.Float64frombits(0x7ff8000000000001)
	otherNaN := math.Float64frombits(0x7ff8000000000002)
	classes := [][]pcommon.Value{
		{pcommon.NewValueEmpty()},
		{pcommon.NewValueStr("")},
		{pcommon.NewValueStr("1")},
		{pcommon.NewValueInt(1)},
		{pcommon.NewValueBool(true)},
		{pcommon.NewValueBool(false)},
		{pcommon.NewValueDouble(1)},
		{pcommon.NewValueDouble(0), pcommon.NewValueDouble(math.Copysign(0, -1))},
		{pcommon.NewValueInt(0)},
		{pcommon.NewValueDouble(nan), pcommon.NewValueDouble(nan)},
		{pcommon.NewValueDouble(otherNaN)},
		{value(func(v pcommon.Value) { v.SetEmptyBytes().FromRaw([]byte("1")) })},
		{array()},
		{array("1", int64(1))},
		{array(int64(1), "1")},
		{array(array("1").AsRaw())},
		{list()},
		{list("a", int64(1), "b", 0.0), list("b", math.Copysign(0, -1), "a", int64(1))},
		{list("a", "1", "b", 0.0)},
		{pcommon.NewValueStr("\xff"), pcommon.NewValueStr("\uFFFD"), pcommon.NewValueStr("\xfe")},
	}
	tables := New(0)
	seen := map[int32]int{}
	for n, class := range classes {
		for i, v := range class {
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
	tables := New(0)
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
	for _, intern := range []func(*Tables, int) int32{
		func(t *Tables, i int) int32 { return t.String(fmt.Sprint(i)) },
		func(t *Tables, i int) int32 { return t.Mapping(Mapping{MemoryStart: uint64(i)}) },
		func(t *Tables, i int) int32 { return t.Location(&Location{Address: uint64(i)}) },
		func(t *Tables, i int) int32 { return t.Function(Function{StartLine: int64(i)}) },
		func(t *Tables, i int) int32 { return t.Link([16]byte{byte(i)}, [8]byte{1}) },
		func(t *Tables, i int) int32 { return t.Attribute(0, 0, Value(nil).AppendInt(int64(i))) },
		func(t *Tables, i int) int32 { return t.Stack(make([]int32, i)) },
	} {
		tables := New(10)
		for i := 1; i < 10; i++ {
			require.EqualValues(t, i, intern(tables, i))
		}
		require.NoError(t, tables.Err())
		require.NoError(t, tables.HasRoom(Growth{Content: 100}))
		require.ErrorContains(t, tables.HasRoom(Growth{Entries: 1}), "s: more than the limit of 10 entries")
		require.ErrorContains(t, tables.HasRoom(Growth{Content: math.MaxUint32 + 1}), "table of strings: more than the limit of 4294967295 bytes")
		require.EqualValues(t, 5, intern(tables, 5), "what is there is found in a full table")
		require.Zero(t, intern(tables, 10))
		var overflow *OverflowError
		require.ErrorAs(t, tables.Err(), &overflow)
		require.Equal(t, 10, overflow.Limit)
	}
}

// remapped is pd written anew through tables, sample by sample.
func remapped(tables *Tables, r *Remap, pd pprofile.Profiles) pprofile.Profiles {
	out := pprofile.NewProfiles()
	r.Reset(pd.Dictionary(), tables)
	pd.ResourceProfiles().CopyTo(out.ResourceProfiles())
	for _, rp := range out.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				p.SampleType().SetTypeStrindex(r.String(p.SampleType().TypeStrindex()))
				p.SampleType().SetUnitStrindex(r.String(p.SampleType().UnitStrindex()))
				p.PeriodType().SetTypeStrindex(r.String(p.PeriodType().TypeStrindex()))
				p.PeriodType().SetUnitStrindex(r.String(p.PeriodType().UnitStrindex()))
				p.AttributeIndices().FromRaw(tables.AppendSet(nil, r.AttributeSet(p.AttributeIndices(), nil)))
				for _, s := range p.Samples().All() {
					s.SetStackIndex(r.Stack(s.StackIndex()))
					s.SetLinkIndex(r.Link(s.LinkIndex()))
					s.AttributeIndices().FromRaw(tables.AppendSet(nil, r.AttributeSet(s.AttributeIndices(), nil)))
				}
			}
		}
	}
	write(tables, out)
	return out
}

// write puts the tables into pd as they are.
func write(t *Tables, pd pprofile.Profiles) {
	dst := pd.Dictionary()
	WriteStrings(dst, t.strings.content, t.strings.ends)
	var m Mapping
	for i := range int32(t.mappings.len()) {
		m.Decode(t.mappings.at(i))
		m.Write(dst.MappingTable().AppendEmpty())
	}
	var l Location
	for i := range int32(t.locations.len()) {
		l.Decode(t.locations.at(i))
		l.Write(dst.LocationTable().AppendEmpty())
	}
	var f Function
	for i := range int32(t.functions.len()) {
		f.Decode(t.functions.at(i))
		f.Write(dst.FunctionTable().AppendEmpty())
	}
	for i := range int32(t.links.len()) {
		WriteLink(dst.LinkTable().AppendEmpty(), t.links.at(i))
	}
	var a Attribute
	for i := range int32(t.attributes.len()) {
		a.Decode(t.attributes.at(i))
		a.Write(dst.AttributeTable().AppendEmpty())
	}
	for i := range int32(t.stacks.len()) {
		WriteStack(dst.StackTable().AppendEmpty(), t.stacks.indicesAt(i))
	}
}

func eachSample(pd pprofile.Profiles, f func(pprofile.Sample)) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				for _, s := range p.Samples().All() {
					f(s)
				}
			}
		}
	}
}

func TestRemapKeepsMeaning(t *testing.T) {
	var r Remap
	tables := New(0)
	for seed := range uint64(profiletest.Rounds(t, 40, 3000)) {
		pd := profiletest.GenerateProfiles(profiletest.NewRand(seed))
		require.NoError(t, Check(pd))
		want := profiletest.Expand(t, pd)
		tables.Reset()
		out := remapped(tables, &r, pd)
		require.NoError(t, tables.Err())
		profiletest.RequireConforms(t, out)
		got := profiletest.Expand(t, out)
		require.Emptyf(t, expand.Diff(want, got), "seed %d", seed)
	}
}

// Tables that write each entry at once find the same entries as those that keep them.
func TestWrittenEntriesAreFoundAgain(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 10, 1000)) {
		kept, at := New(0), New(0)
		dst := pprofile.NewProfiles().Dictionary()
		at.StartWriting(dst)
		for n := range uint64(3) {
			pd := profiletest.GenerateProfiles(profiletest.NewRand(seed + n/2))
			for _, by := range []Granularity{ByAddress, ByLine, ByFunction} {
				a, b := Remap{Granularity: by}, Remap{Granularity: by}
				a.Reset(pd.Dictionary(), kept)
				b.Reset(pd.Dictionary(), at)
				eachSample(pd, func(s pprofile.Sample) {
					require.Equal(t, a.Stack(s.StackIndex()), b.Stack(s.StackIndex()))
					require.Equal(t, a.AttributeSet(s.AttributeIndices(), nil), b.AttributeSet(s.AttributeIndices(), nil))
				})
			}
		}
		at.WriteStrings()
		written := lengthsOf(dst)
		for i, table := range kept.all() {
			require.Equal(t, table.len(), at.all()[i].len())
			if table != &kept.sets {
				require.Equal(t, table.len(), *written.all()[i])
			}
		}
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
	tables := New(0)
	add := func(n int) {
		tables.Grow(Room{Strings: n, Functions: n, Locations: n, Stacks: n})
		for range n {
			name := tables.String(fmt.Sprint(tables.strings.len()))
			function := tables.Function(Function{Name: name})
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
