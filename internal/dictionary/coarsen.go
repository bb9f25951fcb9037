// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Granularity is how finely locations are told apart.
type Granularity uint8

// A location that has no lines always keeps its address, which is all it has.
const (
	ByAddress  Granularity = iota // as they are
	ByLine                        // by function and line: address and column are left out
	ByFunction                    // by function: the line too
)

// Coarsening is what a Remap leaves out of locations, so that more of them are
// equal. The zero value leaves all as it is.
type Coarsening struct {
	Granularity Granularity
	// RebaseMappings makes equal the mappings of one binary at several addresses: equal
	// in size, file offset, file name and attributes. Such a mapping is interned as
	// beginning at 0, and the addresses in it relative to that; see Bases. What is no
	// file ([heap], //anon) stays as it is, and so does a location outside its mapping.
	RebaseMappings bool
}

// Base is where a mapping that is interned as beginning at 0 began.
type Base struct {
	Mapping int32 // index in the tables
	Start   uint64
}

// Bases returns the beginnings of rebased mappings that r has come across since
// Reset. A mapping may have several.
func (r *Remap) Bases() []Base { return r.bases }

// BeginBases makes AppendBases start again.
func (r *Remap) BeginBases() {
	r.basedStacks.reset(len(r.stacks.to))
	r.basedLocations.reset(len(r.locations.to))
}

// AppendBases appends those of Bases that come from stack i of the source, which has been
// asked for; of each location once since BeginBases.
func (r *Remap) AppendBases(dst []Base, i int32) []Base {
	if _, done := r.basedStacks.get(i); done {
		return dst
	}
	r.basedStacks.set(i, 0)
	for _, i := range r.from.StackTable().At(int(i)).LocationIndices().All() {
		if _, done := r.basedLocations.get(i); done {
			continue
		}
		r.basedLocations.set(i, 0)
		l := r.from.LocationTable().At(int(i))
		if start, is, _ := r.base(l); is {
			dst = append(dst, Base{r.rebase(l.MappingIndex()), start})
		}
	}
	return dst
}

// pageSize is what the size of a mapping is rounded up to, as google/pprof does.
const pageSize = 0x1000

// position is where the lines of l are not asked for: its mapping and address.
func (r *Remap) position(l pprofile.Location) (mapping int32, address uint64) {
	i, address := l.MappingIndex(), l.Address()
	if !r.isExact(l) {
		address = 0
	}
	if start, is, inside := r.base(l); is {
		to := r.rebase(i)
		if inside {
			return to, max(address, start) - start
		}
	}
	return r.Mapping(i), address
}

// isExact tells whether the address of l tells it apart.
func (r *Remap) isExact(l pprofile.Location) bool {
	return r.Coarsening.Granularity == ByAddress || l.Lines().Len() == 0
}

// base tells whether the mapping of l, for l, is one that is rebased, where it begins, and
// whether l is inside it. One that begins at 0 is what others may have been rebased to.
func (r *Remap) base(l pprofile.Location) (start uint64, is, inside bool) {
	if !r.Coarsening.RebaseMappings {
		return 0, false, false
	}
	start, limit, ok := r.span(l.MappingIndex())
	inside = !r.isExact(l) || start <= l.Address() && l.Address() <= limit
	return start, ok && (inside || start == 0), inside
}

// span is what mapping i covers, if it is one that can be rebased.
func (r *Remap) span(i int32) (start, limit uint64, ok bool) {
	table := r.from.MappingTable()
	if int(i) >= table.Len() {
		return 0, 0, false
	}
	m := table.At(int(i))
	start, limit = m.MemoryStart(), m.MemoryLimit()
	if limit <= start || limit > math.MaxUint64-pageSize {
		return 0, 0, false
	}
	file := ""
	if f := m.FilenameStrindex(); int(f) < r.from.StringTable().Len() {
		file = r.from.StringTable().At(int(f))
	}
	return start, limit, file != "" && !strings.HasPrefix(file, "[") && !strings.HasPrefix(file, "//anon")
}

// rebase returns the index in the tables of mapping i as one that begins at 0.
func (r *Remap) rebase(i int32) int32 {
	if to, ok := r.rebased.get(i); ok {
		return to
	}
	m := r.from.MappingTable().At(int(i))
	start, limit := m.MemoryStart(), m.MemoryLimit()
	r.mapping.MemoryStart = 0
	r.mapping.MemoryLimit = (limit - start + pageSize - 1) / pageSize * pageSize
	r.mapping.FileOffset = m.FileOffset()
	r.mapping.Filename = r.String(m.FilenameStrindex())
	r.mapping.Attributes = r.appendAttributes(r.mapping.Attributes[:0], m.AttributeIndices())
	to := r.to.Mapping(r.mapping)
	r.rebased.set(i, to)
	r.bases = append(r.bases, Base{to, start})
	return to
}

// line leaves out of a line what the granularity does not ask for.
func (r *Remap) line(l Line) Line {
	switch r.Coarsening.Granularity {
	case ByLine:
		l.Column = 0
	case ByFunction:
		l.Line, l.Column = 0, 0
	}
	return l
}

// Rebase moves the rebased mappings that c has written into dst, and the addresses
// in them, to where bases says, by index in the tables; 0 where it says nothing. Where
// that makes a mapping equal to one that was not rebased, for a location outside it, they
// become one.
func (c *Canonical) Rebase(dst pprofile.ProfilesDictionary, bases map[int32]uint64, by Granularity) {
	starts := make([]uint64, len(c.mappings.place.used))
	for i, old := range c.mappings.place.used {
		starts[i] = bases[old]
		if m := dst.MappingTable().At(i); starts[i] != 0 {
			m.SetMemoryStart(starts[i])
			m.SetMemoryLimit(starts[i] + m.MemoryLimit())
		}
	}
	for _, l := range dst.LocationTable().All() {
		if start := starts[l.MappingIndex()]; start != 0 && (by == ByAddress || l.Lines().Len() == 0) {
			l.SetAddress(start + l.Address())
		}
	}
	mergeMappings(dst)
}

// mergeMappings leaves the first of equal mappings in dst.
func mergeMappings(dst pprofile.ProfilesDictionary) {
	table := dst.MappingTable()
	place := make([]int32, table.Len()) // the new index by the old one
	first := make(map[string]int32, table.Len())
	var key []byte
	for i, m := range table.All() {
		key = (&Mapping{
			MemoryStart: m.MemoryStart(), MemoryLimit: m.MemoryLimit(), FileOffset: m.FileOffset(),
			Filename: m.FilenameStrindex(), Attributes: m.AttributeIndices().AsRaw(),
		}).appendKey(key[:0])
		to, ok := first[string(key)]
		if !ok {
			to = int32(len(first))
			first[string(key)] = to
		}
		place[i] = to
	}
	if len(first) == len(place) {
		return
	}
	for _, l := range dst.LocationTable().All() {
		l.SetMappingIndex(place[l.MappingIndex()])
	}
	old, kept := -1, int32(0)
	table.RemoveIf(func(pprofile.Mapping) bool {
		old++
		if place[old] == kept {
			kept++
			return false
		}
		return true
	})
}
