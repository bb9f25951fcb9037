// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"cmp"
	"hash"
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Canonical is the order in which the entries of Tables are written so that it
// depends on their content alone, not on how they came in, and compresses well:
// stacks sorted from the root, everything else by its first use along them.
//
// Use what the output refers to, call Rank once, ask for the new indices, Write.
// What is not used is left out. The tables must not change in between.
type Canonical struct {
	t *Tables

	strings, mappings, locations, functions, links, attributes, stacks, sets selection

	// The entry of each table that is being read.
	mapping   Mapping
	location  Location
	function  Function
	attribute attribute
}

// selection is what is used of one table.
type selection struct {
	used []int32 // old indices; by rank after ranking
	rank []int32 // by old index: rank plus one among those used, 0 for unused
	// The new order. Index 0 always is the zero value.
	order []int32 // old indices by new index
	place []int32 // by old index: the new index
}

func (s *selection) init(n int) {
	s.rank = make([]int32, n)
	s.place = make([]int32, n)
	s.order = append(s.order, 0)
}

// use returns whether i is new.
func (s *selection) use(i int32) bool {
	if s.rank[i] != 0 {
		return false
	}
	s.rank[i] = -1
	s.used = append(s.used, i)
	return true
}

// ranked numbers the used entries in their present order.
func (s *selection) ranked() {
	for n, i := range s.used {
		s.rank[i] = int32(n + 1)
	}
}

// add gives i the next new index, if it has none.
func (s *selection) add(i int32) {
	if i != 0 && s.place[i] == 0 {
		s.place[i] = int32(len(s.order))
		s.order = append(s.order, i)
	}
}

// NewCanonical returns an order in which nothing is used yet.
func NewCanonical(t *Tables) *Canonical {
	c := &Canonical{t: t}
	n := t.Lengths()
	c.strings.init(n.Strings)
	c.mappings.init(n.Mappings)
	c.locations.init(n.Locations)
	c.functions.init(n.Functions)
	c.links.init(n.Links)
	c.attributes.init(n.Attributes)
	c.stacks.init(n.Stacks)
	c.sets.init(t.sets.len())
	return c
}

// UseSample uses a stack, an attribute set and a link.
func (c *Canonical) UseSample(stack, set, link int32) {
	if c.stacks.use(stack) {
		for _, l := range c.t.stacks.at(stack) {
			c.useLocation(l)
		}
	}
	c.UseSet(set)
	c.links.use(link)
}

// UseSet uses an attribute set.
func (c *Canonical) UseSet(set int32) {
	if c.sets.use(set) {
		r := reader{c.t.sets.at(set)}
		for r.more() {
			c.useAttribute(r.index())
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
	l.decode(c.t.locations.at(i))
	if c.mappings.use(l.Mapping) {
		m := &c.mapping
		m.decode(c.t.mappings.at(l.Mapping))
		c.UseString(m.Filename)
		for _, a := range m.Attributes {
			c.useAttribute(a)
		}
	}
	for _, line := range l.Lines {
		if c.functions.use(line.Function) {
			f := &c.function
			f.decode(c.t.functions.at(line.Function))
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
		a.decode(c.t.attributes.at(i))
		c.UseString(a.key)
		c.UseString(a.unit)
	}
}

// Rank orders by content what is used.
func (c *Canonical) Rank() {
	t := c.t
	slices.SortFunc(c.strings.used, func(a, b int32) int {
		return bytes.Compare(t.strings.at(a), t.strings.at(b))
	})
	c.strings.ranked()
	slices.SortFunc(c.links.used, func(a, b int32) int {
		return bytes.Compare(t.links.at(a), t.links.at(b))
	})
	c.links.ranked()
	c.rankAttributes()
	sortByKeys(&c.sets, func(key []int64, i int32) []int64 {
		return c.appendAttributeRanks(key, reader{t.sets.at(i)})
	})
	sortByKeys(&c.functions, func(key []int64, i int32) []int64 {
		f := &c.function
		f.decode(t.functions.at(i))
		return append(key, int64(c.strings.rank[f.Name]), int64(c.strings.rank[f.SystemName]),
			int64(c.strings.rank[f.Filename]), f.StartLine)
	})
	sortByKeys(&c.mappings, func(key []int64, i int32) []int64 {
		m := &c.mapping
		m.decode(t.mappings.at(i))
		key = append(key, int64(c.strings.rank[m.Filename]), int64(m.MemoryStart), int64(m.MemoryLimit), int64(m.FileOffset))
		return c.appendRanks(key, m.Attributes)
	})
	sortByKeys(&c.locations, func(key []int64, i int32) []int64 {
		l := &c.location
		l.decode(t.locations.at(i))
		for _, line := range l.Lines {
			key = append(key, int64(c.functions.rank[line.Function]), line.Line, line.Column)
		}
		key = append(key, 0, int64(c.mappings.rank[l.Mapping]), int64(l.Address))
		return c.appendRanks(key, l.Attributes)
	})
	sortByKeys(&c.stacks, func(key []int32, i int32) []int32 {
		start := len(key)
		for _, l := range t.stacks.at(i) {
			key = append(key, c.locations.rank[l])
		}
		slices.Reverse(key[start:])
		return key
	})
	for _, i := range c.stacks.used {
		c.stacks.add(i)
	}
}

// rankAttributes compares values by their bytes, which are the content.
func (c *Canonical) rankAttributes() {
	slices.SortFunc(c.attributes.used, func(x, y int32) int {
		var a, b attribute
		a.decode(c.t.attributes.at(x))
		b.decode(c.t.attributes.at(y))
		return cmp.Or(
			cmp.Compare(c.strings.rank[a.key], c.strings.rank[b.key]),
			cmp.Compare(c.strings.rank[a.unit], c.strings.rank[b.unit]),
			bytes.Compare(a.value, b.value),
		)
	})
	c.attributes.ranked()
}

func (c *Canonical) appendAttributeRanks(key []int64, r reader) []int64 {
	start := len(key)
	for r.more() {
		key = append(key, int64(c.attributes.rank[r.index()]))
	}
	slices.Sort(key[start:])
	return key
}

func (c *Canonical) appendRanks(key []int64, attributes []int32) []int64 {
	start := len(key)
	for _, a := range attributes {
		key = append(key, int64(c.attributes.rank[a]))
	}
	slices.Sort(key[start:])
	return key
}

// sortByKeys ranks the used entries by the keys that appendKey makes of them.
func sortByKeys[N int32 | int64](s *selection, appendKey func([]N, int32) []N) {
	var keys []N
	type entry struct {
		old        int32
		start, end int
	}
	entries := make([]entry, len(s.used))
	for n, i := range s.used {
		start := len(keys)
		keys = appendKey(keys, i)
		entries[n] = entry{i, start, len(keys)}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return slices.Compare(keys[a.start:a.end], keys[b.start:b.end])
	})
	for n, e := range entries {
		s.used[n] = e.old
	}
	s.ranked()
}

// Ranks returns where the parts of a used sample are among all of their kind, by
// content (stacks from the root), after Rank.
func (c *Canonical) Ranks(stack, set, link int32) (ofStack, ofSet, ofLink int32) {
	return c.stacks.rank[stack], c.sets.rank[set], c.links.rank[link]
}

// CompareStrings orders two strings by content, after Rank.
func (c *Canonical) CompareStrings(a, b int32) int {
	return cmp.Compare(c.strings.rank[a], c.strings.rank[b])
}

// CompareSets orders two attribute sets by content, after Rank.
func (c *Canonical) CompareSets(a, b int32) int {
	return cmp.Compare(c.sets.rank[a], c.sets.rank[b])
}

// String returns the new index of a used string.
func (c *Canonical) String(i int32) int32 {
	c.strings.add(i)
	return c.strings.place[i]
}

// Stack returns the new index of a used stack.
func (c *Canonical) Stack(i int32) int32 { return c.stacks.place[i] }

// Link returns the new index of a used link.
func (c *Canonical) Link(i int32) int32 {
	c.links.add(i)
	return c.links.place[i]
}

// AppendSet appends the new indices of a used attribute set, in the order of
// their content.
func (c *Canonical) AppendSet(dst []int32, set int32) []int32 {
	start := len(dst)
	r := reader{c.t.sets.at(set)}
	for r.more() {
		dst = append(dst, r.index())
	}
	c.placeAttributes(dst[start:])
	return dst
}

// placeAttributes turns old indices into new ones, in the order of their content.
func (c *Canonical) placeAttributes(attributes []int32) {
	slices.SortFunc(attributes, func(a, b int32) int {
		return cmp.Compare(c.attributes.rank[a], c.attributes.rank[b])
	})
	for n, i := range attributes {
		c.attributes.add(i)
		attributes[n] = c.attributes.place[i]
	}
}

// Write fills dst, which must be empty, with what is used. Each entry is also
// added to digest, in its binary form.
func (c *Canonical) Write(dst pprofile.ProfilesDictionary, digest hash.Hash) {
	var key []byte
	add := func(table byte, k []byte) {
		key = k
		digest.Write(appendUint([]byte{table}, uint64(len(k))))
		digest.Write(k)
	}
	t := c.t

	stacks := dst.StackTable()
	stacks.EnsureCapacity(len(c.stacks.order))
	var stack []int32
	for _, i := range c.stacks.order {
		stack = append(stack[:0], t.stacks.at(i)...)
		for n := len(stack) - 1; n >= 0; n-- {
			c.locations.add(stack[n])
			stack[n] = c.locations.place[stack[n]]
		}
		add('s', appendIndices(key[:0], stack))
		writeStack(stacks.AppendEmpty(), stack)
	}
	locations := dst.LocationTable()
	locations.EnsureCapacity(len(c.locations.order))
	l := &c.location
	for _, i := range c.locations.order {
		l.decode(t.locations.at(i))
		c.mappings.add(l.Mapping)
		l.Mapping = c.mappings.place[l.Mapping]
		for n := range l.Lines {
			line := &l.Lines[n]
			c.functions.add(line.Function)
			line.Function = c.functions.place[line.Function]
		}
		c.placeAttributes(l.Attributes)
		add('l', l.appendKey(key[:0]))
		l.write(locations.AppendEmpty())
	}
	mappings := dst.MappingTable()
	mappings.EnsureCapacity(len(c.mappings.order))
	m := &c.mapping
	for _, i := range c.mappings.order {
		m.decode(t.mappings.at(i))
		m.Filename = c.String(m.Filename)
		c.placeAttributes(m.Attributes)
		add('m', m.appendKey(key[:0]))
		m.write(mappings.AppendEmpty())
	}
	functions := dst.FunctionTable()
	functions.EnsureCapacity(len(c.functions.order))
	f := &c.function
	for _, i := range c.functions.order {
		f.decode(t.functions.at(i))
		f.Name, f.SystemName, f.Filename = c.String(f.Name), c.String(f.SystemName), c.String(f.Filename)
		add('f', f.appendKey(key[:0]))
		f.write(functions.AppendEmpty())
	}
	attributes := dst.AttributeTable()
	attributes.EnsureCapacity(len(c.attributes.order))
	a := &c.attribute
	for _, i := range c.attributes.order {
		a.decode(t.attributes.at(i))
		a.key, a.unit = c.String(a.key), c.String(a.unit)
		add('a', a.appendKey(key[:0]))
		a.write(attributes.AppendEmpty())
	}
	links := dst.LinkTable()
	links.EnsureCapacity(len(c.links.order))
	for _, i := range c.links.order {
		add('k', append(key[:0], t.links.at(i)...))
		writeLink(links.AppendEmpty(), t.links.at(i))
	}
	var all []byte
	ends := make([]uint32, 0, len(c.strings.order))
	for _, i := range c.strings.order {
		add('t', append(key[:0], t.strings.at(i)...))
		all = append(all, t.strings.at(i)...)
		ends = append(ends, uint32(len(all)))
	}
	writeStrings(dst, all, ends)
}
