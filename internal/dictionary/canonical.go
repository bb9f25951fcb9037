// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"cmp"
	"hash"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/entry"
)

// Canonical writes entries of Tables in an order that depends on their content alone, not
// on the order in which they were added, and that compresses well: stacks sorted from
// the root, all others by their first use in them.
//
// First call the Use methods for all that the output refers to, then Rank, then ask for
// the new indices, then call Write. Canonical leaves out what is not used. The tables
// must not change in between.
type Canonical struct {
	t *Tables

	perTable[selection]

	// The entry of each table that is being read.
	mapping   Mapping
	location  Location
	function  Function
	attribute entry.Attribute
	set       []int32
}

// selection is what is used of one table.
type selection struct {
	rank  memo // by old index: the rank among those used; unknown if it is not used
	place memo // by old index: the new index, which is 0 for 0
}

func (s *selection) reset(n int) {
	s.rank.reset(n)
	s.place.reset(n)
	s.place.set(0, 0)
}

// use returns whether i is new.
func (s *selection) use(i int32) bool {
	if _, used := s.rank.get(i); used {
		return false
	}
	s.rank.set(i, 0)
	return true
}

// sort ranks what is used.
func (s *selection) sort(compare func(a, b int32) int) {
	slices.SortFunc(s.rank.used, compare)
	s.ranked()
}

// ranked gives what is used its ranks, in the present order.
func (s *selection) ranked() {
	for n, i := range s.rank.used {
		s.rank.to[i] = int32(n + 1)
	}
}

func (s *selection) rankOf(i int32) int32 { return s.rank.to[i] }

// placeOf returns the new index of i, which is the next one if it has none.
func (s *selection) placeOf(i int32) int32 {
	if s.place.to[i] == 0 {
		s.place.set(i, int32(len(s.place.used)))
	}
	return s.place.to[i] - 1
}

// order returns the old indices in the new order. It grows while it is read.
func (s *selection) order(yield func(i int32) bool) {
	for n := 0; n < len(s.place.used) && yield(s.place.used[n]); n++ {
	}
}

// NewCanonical returns a Canonical in which nothing is used.
func NewCanonical(t *Tables) *Canonical {
	c := &Canonical{t: t}
	c.Reset()
	return c
}

// Reset makes c one in which nothing is used. It keeps the memory, and takes time for
// what was used only.
func (c *Canonical) Reset() {
	tables := c.t.all()
	for i, s := range c.all() {
		s.reset(tables[i].len())
	}
}

// UseSample uses a stack, an attribute set and a link.
func (c *Canonical) UseSample(stack, set, link int32) {
	if c.stacks.use(stack) {
		for _, l := range c.t.stacks.indicesAt(stack) {
			c.useLocation(l)
		}
	}
	c.UseSet(set)
	c.links.use(link)
}

// UseSet uses an attribute set.
func (c *Canonical) UseSet(set int32) {
	if c.sets.use(set) {
		c.set = c.t.AppendSet(c.set[:0], set)
		for _, a := range c.set {
			c.useAttribute(a)
		}
	}
}

// UseString uses a string.
func (c *Canonical) UseString(i int32) { c.strings.use(i) }

func (c *Canonical) useLocation(i int32) {
	if !c.locations.use(i) {
		return
	}
	l := &c.location
	l.Decode(c.t.locations.at(i))
	if c.mappings.use(l.Mapping) {
		m := &c.mapping
		m.Decode(c.t.mappings.at(l.Mapping))
		c.UseString(m.Filename)
		for _, a := range m.Attributes {
			c.useAttribute(a)
		}
	}
	for _, line := range l.Lines {
		if c.functions.use(line.Function) {
			f := &c.function
			f.Decode(c.t.functions.at(line.Function))
			c.UseString(f.Name)
			c.UseString(f.SystemName)
			c.UseString(f.Filename)
		}
	}
	for _, a := range l.Attributes {
		c.useAttribute(a)
	}
}

func (c *Canonical) useAttribute(i int32) {
	if c.attributes.use(i) {
		a := &c.attribute
		a.Decode(c.t.attributes.at(i))
		c.UseString(a.Key)
		c.UseString(a.Unit)
	}
}

// Rank orders by content what is used.
func (c *Canonical) Rank() {
	t := c.t
	c.strings.sort(func(a, b int32) int { return bytes.Compare(t.strings.at(a), t.strings.at(b)) })
	c.links.sort(func(a, b int32) int { return bytes.Compare(t.links.at(a), t.links.at(b)) })
	c.attributes.sort(func(x, y int32) int {
		var a, b entry.Attribute
		a.Decode(t.attributes.at(x))
		b.Decode(t.attributes.at(y))
		return cmp.Or(
			cmp.Compare(c.strings.rankOf(a.Key), c.strings.rankOf(b.Key)),
			cmp.Compare(c.strings.rankOf(a.Unit), c.strings.rankOf(b.Unit)),
			bytes.Compare(a.Value, b.Value),
		)
	})
	sortByKeys(&c.sets, func(key []int64, i int32) []int64 {
		c.set = t.AppendSet(c.set[:0], i)
		return c.appendAttributeRanks(key, c.set)
	})
	sortByKeys(&c.functions, func(key []int64, i int32) []int64 {
		f := &c.function
		f.Decode(t.functions.at(i))
		return append(key, int64(c.strings.rankOf(f.Name)), int64(c.strings.rankOf(f.SystemName)),
			int64(c.strings.rankOf(f.Filename)), f.StartLine)
	})
	sortByKeys(&c.mappings, func(key []int64, i int32) []int64 {
		m := &c.mapping
		m.Decode(t.mappings.at(i))
		key = append(key, int64(c.strings.rankOf(m.Filename)), int64(m.MemoryStart), int64(m.MemoryLimit), int64(m.FileOffset))
		return c.appendAttributeRanks(key, m.Attributes)
	})
	sortByKeys(&c.locations, func(key []int64, i int32) []int64 {
		l := &c.location
		l.Decode(t.locations.at(i))
		for _, line := range l.Lines {
			key = append(key, int64(c.functions.rankOf(line.Function)), line.Line, line.Column)
		}
		key = append(key, 0, int64(c.mappings.rankOf(l.Mapping)), int64(l.Address))
		return c.appendAttributeRanks(key, l.Attributes)
	})
	sortByKeys(&c.stacks, func(key []int32, i int32) []int32 {
		start := len(key)
		for _, l := range t.stacks.indicesAt(i) {
			key = append(key, c.locations.rankOf(l))
		}
		slices.Reverse(key[start:])
		return key
	})
	for _, i := range c.stacks.rank.used {
		c.stacks.placeOf(i)
	}
}

func (c *Canonical) appendAttributeRanks(key []int64, attributes []int32) []int64 {
	start := len(key)
	for _, a := range attributes {
		key = append(key, int64(c.attributes.rankOf(a)))
	}
	slices.Sort(key[start:])
	return key
}

// sortByKeys ranks what is used by the keys that appendKey makes.
func sortByKeys[N int32 | int64](s *selection, appendKey func([]N, int32) []N) {
	var keys []N
	type entry struct {
		old        int32
		start, end int
	}
	entries := make([]entry, len(s.rank.used))
	for n, i := range s.rank.used {
		start := len(keys)
		keys = appendKey(keys, i)
		entries[n] = entry{i, start, len(keys)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return slices.Compare(keys[a.start:a.end], keys[b.start:b.end])
	})
	for n, e := range entries {
		s.rank.used[n] = e.old
	}
	s.ranked()
}

// Ranks returns where the parts of a used sample are among all of their kind, by
// content (stacks from the root), after Rank.
func (c *Canonical) Ranks(stack, set, link int32) (ofStack, ofSet, ofLink int32) {
	return c.stacks.rankOf(stack), c.sets.rankOf(set), c.links.rankOf(link)
}

// CompareStrings orders two strings by content, after Rank.
func (c *Canonical) CompareStrings(a, b int32) int {
	return cmp.Compare(c.strings.rankOf(a), c.strings.rankOf(b))
}

// CompareSets orders two attribute sets by content, after Rank.
func (c *Canonical) CompareSets(a, b int32) int {
	return cmp.Compare(c.sets.rankOf(a), c.sets.rankOf(b))
}

// String returns the new index of a used string.
func (c *Canonical) String(i int32) int32 { return c.strings.placeOf(i) }

// Stack returns the new index of a used stack.
func (c *Canonical) Stack(i int32) int32 { return c.stacks.placeOf(i) }

// Link returns the new index of a used link.
func (c *Canonical) Link(i int32) int32 { return c.links.placeOf(i) }

// AppendSet appends the new indices of a used attribute set, in the order of their
// content.
func (c *Canonical) AppendSet(dst []int32, set int32) []int32 {
	start := len(dst)
	dst = c.t.AppendSet(dst, set)
	c.placeAttributes(dst[start:])
	return dst
}

// placeAttributes turns old indices into new ones, in the order of their content.
func (c *Canonical) placeAttributes(attributes []int32) {
	slices.SortFunc(attributes, func(a, b int32) int {
		return cmp.Compare(c.attributes.rankOf(a), c.attributes.rankOf(b))
	})
	for n, i := range attributes {
		attributes[n] = c.attributes.placeOf(i)
	}
}

// Write fills dst, which must be empty, with what is used. Each entry is also
// added to digest, in its binary form.
func (c *Canonical) Write(dst pprofile.ProfilesDictionary, digest hash.Hash) {
	var key []byte
	add := func(table byte, k []byte) {
		key = k
		digest.Write(entry.AppendUint([]byte{table}, uint64(len(k))))
		digest.Write(k)
	}
	t := c.t

	stacks := dst.StackTable()
	stacks.EnsureCapacity(len(c.stacks.place.used))
	var stack []int32
	for i := range c.stacks.order {
		stack = append(stack[:0], t.stacks.indicesAt(i)...)
		for n := len(stack) - 1; n >= 0; n-- {
			stack[n] = c.locations.placeOf(stack[n])
		}
		add('s', entry.AppendIndices(key[:0], stack))
		entry.WriteStack(stacks.AppendEmpty(), stack)
	}
	locations := dst.LocationTable()
	locations.EnsureCapacity(len(c.locations.place.used))
	l := &c.location
	for i := range c.locations.order {
		l.Decode(t.locations.at(i))
		l.Mapping = c.mappings.placeOf(l.Mapping)
		for n := range l.Lines {
			l.Lines[n].Function = c.functions.placeOf(l.Lines[n].Function)
		}
		c.placeAttributes(l.Attributes)
		add('l', l.AppendKey(key[:0]))
		l.Write(locations.AppendEmpty())
	}
	mappings := dst.MappingTable()
	mappings.EnsureCapacity(len(c.mappings.place.used))
	m := &c.mapping
	for i := range c.mappings.order {
		m.Decode(t.mappings.at(i))
		m.Filename = c.String(m.Filename)
		c.placeAttributes(m.Attributes)
		add('m', m.AppendKey(key[:0]))
		m.Write(mappings.AppendEmpty())
	}
	functions := dst.FunctionTable()
	functions.EnsureCapacity(len(c.functions.place.used))
	f := &c.function
	for i := range c.functions.order {
		f.Decode(t.functions.at(i))
		f.Name, f.SystemName, f.Filename = c.String(f.Name), c.String(f.SystemName), c.String(f.Filename)
		add('f', f.AppendKey(key[:0]))
		f.Write(functions.AppendEmpty())
	}
	attributes := dst.AttributeTable()
	attributes.EnsureCapacity(len(c.attributes.place.used))
	a := &c.attribute
	for i := range c.attributes.order {
		a.Decode(t.attributes.at(i))
		a.Key, a.Unit = c.String(a.Key), c.String(a.Unit)
		add('a', a.AppendKey(key[:0]))
		a.Write(attributes.AppendEmpty())
	}
	links := dst.LinkTable()
	links.EnsureCapacity(len(c.links.place.used))
	for i := range c.links.order {
		add('k', append(key[:0], t.links.at(i)...))
		entry.WriteLink(links.AppendEmpty(), t.links.at(i))
	}
	var all []byte
	ends := make([]uint32, 0, len(c.strings.place.used))
	for i := range c.strings.order {
		add('t', append(key[:0], t.strings.at(i)...))
		all = append(all, t.strings.at(i)...)
		ends = append(ends, uint32(len(all)))
	}
	entry.WriteStrings(dst, all, ends)
}
