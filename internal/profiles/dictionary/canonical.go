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

// Writer writes entries of Tables in an order that depends on their content alone, not
// on the order in which they were added, and that compresses well: stacks sorted from
// the root, all others by their first use in them.
//
// First call the Use methods for all that the output refers to, then Rank, then ask for
// the new indices, then call Write. Writer leaves out unused entries.
type Writer struct {
	from *Tables

	perTable[selection]
	// images has mappings by address that are equal to an image in the output, and the image.
	images map[int32]int32

	// The entry of each table that is being read.
	mapping   Mapping
	location  Location
	function  Function
	attribute Attribute
}

// selection has the used entries of one table.
type selection struct {
	used  []int32 // old indices, in the order of their ranks after sort
	rank  []int32 // by old index: the rank among those used, from 1; 0 if it is not used
	order []int32 // old indices, in the new order. It grows while it is read
	place []int32 // by old index: the new index plus one; 0 if it has none
}

// reset makes s one of a table of n entries, of which the first has its place. It takes time for those used only.
func (s *selection) reset(n int) {
	for _, i := range s.used {
		s.rank[i] = 0
	}
	for _, i := range s.order {
		s.place[i] = 0
	}
	s.used, s.order = s.used[:0], append(s.order[:0], 0)
	if n > len(s.rank) {
		s.rank, s.place = make([]int32, n), make([]int32, n)
	}
	s.place[0] = 1
}

// use returns whether i is new.
func (s *selection) use(i int32) bool {
	if s.rank[i] != 0 {
		return false
	}
	s.rank[i] = 1
	s.used = append(s.used, i)
	return true
}

// sort ranks the used entries.
func (s *selection) sort(compare func(a, b int32) int) {
	slices.SortFunc(s.used, compare)
	s.ranked()
}

// ranked gives the used entries their ranks, in the present order.
func (s *selection) ranked() {
	for n, i := range s.used {
		s.rank[i] = int32(n + 1)
	}
}

// placeOf returns the new index of i, which is the next one if it has none.
func (s *selection) placeOf(i int32) int32 {
	if s.place[i] == 0 {
		s.order = append(s.order, i)
		s.place[i] = int32(len(s.order))
	}
	return s.place[i] - 1
}

// inOrder is an iterator of the old indices in the new order.
func (s *selection) inOrder(yield func(i int32) bool) {
	for n := 0; n < len(s.order) && yield(s.order[n]); n++ {
	}
}

// NewWriter returns a Writer of from in which nothing is used.
func NewWriter(from *Tables) *Writer {
	w := &Writer{from: from}
	w.Reset()
	return w
}

// Reset makes w one in which nothing is used. It keeps the memory, and takes time for
// the used entries only.
func (w *Writer) Reset() {
	for i, table := range w.from.all() {
		w.all()[i].reset(table.len())
	}
	clear(w.images)
}

// UseSample uses a stack, an attribute set and a link.
func (w *Writer) UseSample(stack, set, link int32) {
	if w.stacks.use(stack) {
		for _, l := range w.from.stacks.indicesAt(stack) {
			w.useLocation(l)
		}
	}
	w.UseSet(set)
	w.links.use(link)
}

// UseSet uses an attribute set.
func (w *Writer) UseSet(set int32) {
	if w.sets.use(set) {
		for _, a := range w.from.Set(set) {
			w.useAttribute(a)
		}
	}
}

// UseString uses a string.
func (w *Writer) UseString(i int32) { w.strings.use(i) }

func (w *Writer) useLocation(i int32) {
	if !w.locations.use(i) {
		return
	}
	l := &w.location
	l.Decode(w.from.locations.at(i))
	if w.mappings.use(l.Mapping) {
		m := &w.mapping
		w.from.readMapping(l.Mapping, m)
		w.UseString(m.Filename)
		for _, a := range m.Attributes {
			w.useAttribute(a)
		}
	}
	for _, line := range l.Lines {
		if w.functions.use(line.Function) {
			f := &w.function
			f.Decode(w.from.functions.at(line.Function))
			w.UseString(f.Name)
			w.UseString(f.SystemName)
			w.UseString(f.Filename)
		}
	}
	for _, a := range l.Attributes {
		w.useAttribute(a)
	}
}

func (w *Writer) useAttribute(i int32) {
	if w.attributes.use(i) {
		a := &w.attribute
		a.Decode(w.from.attributes.at(i))
		w.UseString(a.Key)
		w.UseString(a.Unit)
	}
}

// Rank orders the used entries by content. The addresses of images, which the first payload decides, do not count.
func (w *Writer) Rank() {
	w.joinImages()
	w.strings.sort(func(a, b int32) int { return bytes.Compare(w.from.strings.at(a), w.from.strings.at(b)) })
	w.links.sort(func(a, b int32) int { return bytes.Compare(w.from.links.at(a), w.from.links.at(b)) })
	w.attributes.sort(func(x, y int32) int {
		var a, b Attribute
		a.Decode(w.from.attributes.at(x))
		b.Decode(w.from.attributes.at(y))
		return cmp.Or(
			cmp.Compare(w.strings.rank[a.Key], w.strings.rank[b.Key]),
			cmp.Compare(w.strings.rank[a.Unit], w.strings.rank[b.Unit]),
			bytes.Compare(a.Value, b.Value),
		)
	})
	sortByKeys(&w.sets, func(key []int64, i int32) []int64 {
		return w.appendAttributeRanks(key, w.from.Set(i))
	})
	sortByKeys(&w.functions, func(key []int64, i int32) []int64 {
		f := &w.function
		f.Decode(w.from.functions.at(i))
		return append(key, int64(w.strings.rank[f.Name]), int64(w.strings.rank[f.SystemName]),
			int64(w.strings.rank[f.Filename]), f.StartLine)
	})
	sortByKeys(&w.mappings, func(key []int64, i int32) []int64 {
		m := &w.mapping
		w.from.readMapping(i, m)
		key = append(key, int64(w.strings.rank[m.Filename]), int64(m.MemoryStart), int64(m.MemoryLimit), int64(m.FileOffset),
			int64(w.from.mappings.at(i)[0]))
		return w.appendAttributeRanks(key, m.Attributes)
	})
	sortByKeys(&w.locations, func(key []int64, i int32) []int64 {
		l := &w.location
		l.Decode(w.from.locations.at(i))
		for _, line := range l.Lines {
			key = append(key, int64(w.functions.rank[line.Function]), line.Line, line.Column)
		}
		key = append(key, 0, int64(w.mappings.rank[l.Mapping]), int64(l.Address))
		return w.appendAttributeRanks(key, l.Attributes)
	})
	sortByKeys(&w.stacks, func(key []int32, i int32) []int32 {
		start := len(key)
		for _, l := range w.from.stacks.indicesAt(i) {
			key = append(key, w.locations.rank[l])
		}
		slices.Reverse(key[start:])
		return key
	})
	for _, i := range w.stacks.used {
		w.stacks.placeOf(i)
	}
}

func (w *Writer) appendAttributeRanks(key []int64, attributes []int32) []int64 {
	start := len(key)
	for _, a := range attributes {
		key = append(key, int64(w.attributes.rank[a]))
	}
	slices.Sort(key[start:])
	return key
}

// sortByKeys ranks the used entries by the keys that appendKey makes.
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
func (w *Writer) Ranks(stack, set, link int32) (ofStack, ofSet, ofLink int32) {
	return w.stacks.rank[stack], w.sets.rank[set], w.links.rank[link]
}

// CompareStrings orders two strings by content, after Rank.
func (w *Writer) CompareStrings(a, b int32) int {
	return cmp.Compare(w.strings.rank[a], w.strings.rank[b])
}

// CompareSets orders two attribute sets by content, after Rank.
func (w *Writer) CompareSets(a, b int32) int {
	return cmp.Compare(w.sets.rank[a], w.sets.rank[b])
}

// String returns the new index of a used string.
func (w *Writer) String(i int32) int32 { return w.strings.placeOf(i) }

// Stack returns the new index of a used stack.
func (w *Writer) Stack(i int32) int32 { return w.stacks.placeOf(i) }

// Link returns the new index of a used link.
func (w *Writer) Link(i int32) int32 { return w.links.placeOf(i) }

// AppendSet appends the new indices of a used attribute set, in the order of their
// content.
func (w *Writer) AppendSet(dst []int32, set int32) []int32 {
	start := len(dst)
	dst = append(dst, w.from.Set(set)...)
	w.placeAttributes(dst[start:])
	return dst
}

// placeAttributes turns old indices into new ones, in the order of their content.
func (w *Writer) placeAttributes(attributes []int32) {
	slices.SortFunc(attributes, func(a, b int32) int {
		return cmp.Compare(w.attributes.rank[a], w.attributes.rank[b])
	})
	for n, i := range attributes {
		attributes[n] = w.attributes.placeOf(i)
	}
}

// joinImages finds the mappings by address that are equal to an image in the output.
func (w *Writer) joinImages() {
	t, m := w.from, &w.mapping
	places := map[string]int32{} // of images in the output
	var key []byte
	for _, i := range w.mappings.used {
		if image := t.imageOf(i); image != nil {
			t.readMapping(i, m)
			m.MemoryStart, m.MemoryLimit = image.start, image.start+m.MemoryLimit
			key = m.AppendKey(key[:0])
			places[string(key)] = i
		}
	}
	if len(places) == 0 {
		return
	}
	for _, i := range w.mappings.used {
		if image, ok := places[string(t.mappings.at(i)[1:])]; ok && image != i && t.imageOf(i) == nil {
			if w.images == nil {
				w.images = map[int32]int32{}
			}
			w.images[i] = image
		}
	}
}

// placeMapping returns the new index of mapping i.
func (w *Writer) placeMapping(i int32) int32 {
	if len(w.images) > 0 {
		if image, ok := w.images[i]; ok {
			i = image
		}
	}
	return w.mappings.placeOf(i)
}

// Write fills dst, which must be empty, with the used entries. Each entry is also
// added to digest, in its binary form: an image, and the locations in it, without its start.
func (w *Writer) Write(dst pprofile.ProfilesDictionary, digest hash.Hash) {
	var key []byte
	add := func(table byte, k []byte) {
		key = k
		digest.Write(appendUint([]byte{table}, uint64(len(k))))
		digest.Write(k)
	}

	var stack []int32
	writeTable(&w.stacks, dst.StackTable(), func(i int32, to pprofile.Stack) {
		stack = append(stack[:0], w.from.stacks.indicesAt(i)...)
		for n := len(stack) - 1; n >= 0; n-- {
			stack[n] = w.locations.placeOf(stack[n])
		}
		add('s', appendIndices(key[:0], stack))
		writeStack(to, stack)
	})
	writeTable(&w.locations, dst.LocationTable(), func(i int32, to pprofile.Location) {
		l := &w.location
		l.Decode(w.from.locations.at(i))
		image := w.from.imageOf(l.Mapping)
		l.Mapping = w.placeMapping(l.Mapping)
		for n := range l.Lines {
			l.Lines[n].Function = w.functions.placeOf(l.Lines[n].Function)
		}
		w.placeAttributes(l.Attributes)
		add('l', l.AppendKey(key[:0]))
		if image != nil && l.Address != 0 {
			l.Address += image.start - 1
		}
		l.Write(to)
	})
	writeTable(&w.mappings, dst.MappingTable(), func(i int32, to pprofile.Mapping) {
		m := &w.mapping
		w.from.readMapping(i, m)
		m.Filename = w.String(m.Filename)
		w.placeAttributes(m.Attributes)
		table, start := byte('m'), uint64(0)
		if image := w.from.imageOf(i); image != nil {
			table, start = 'i', image.start
		}
		add(table, m.AppendKey(key[:0]))
		m.MemoryStart += start
		m.MemoryLimit += start
		m.Write(to)
	})
	writeTable(&w.functions, dst.FunctionTable(), func(i int32, to pprofile.Function) {
		f := &w.function
		f.Decode(w.from.functions.at(i))
		f.Name, f.SystemName, f.Filename = w.String(f.Name), w.String(f.SystemName), w.String(f.Filename)
		add('f', f.AppendKey(key[:0]))
		f.Write(to)
	})
	writeTable(&w.attributes, dst.AttributeTable(), func(i int32, to pprofile.KeyValueAndUnit) {
		a := &w.attribute
		a.Decode(w.from.attributes.at(i))
		a.Key, a.Unit = w.String(a.Key), w.String(a.Unit)
		add('a', a.AppendKey(key[:0]))
		a.Write(to)
	})
	writeTable(&w.links, dst.LinkTable(), func(i int32, to pprofile.Link) {
		add('k', append(key[:0], w.from.links.at(i)...))
		writeLink(to, w.from.links.at(i))
	})
	var all []byte
	ends := make([]uint32, 0, len(w.strings.order))
	for i := range w.strings.inOrder {
		add('t', append(key[:0], w.from.strings.at(i)...))
		all = append(all, w.from.strings.at(i)...)
		ends = append(ends, uint32(len(all)))
	}
	writeStrings(dst, all, ends)
}

// writeTable appends the used entries of one table to dst, in the new order.
func writeTable[E any](s *selection, dst interface {
	EnsureCapacity(n int)
	AppendEmpty() E
}, write func(i int32, to E),
) {
	dst.EnsureCapacity(len(s.order))
	for i := range s.inOrder {
		write(i, dst.AppendEmpty())
	}
}
