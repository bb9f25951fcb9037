// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// Granularity says which fields distinguish locations.
type Granularity uint8

// A location without lines always keeps its address.
const (
	ByAddress  Granularity = iota // all fields
	ByLine                        // function and line, not address and column
	ByFunction                    // function
)

// Coarsening says which fields a Remap leaves out of locations, so that more of them are equal.
// The zero value keeps all.
type Coarsening struct {
	Granularity Granularity
	// RebaseMappings makes mappings of one binary at several addresses equal if they
	// have the same size, file offset, file name and attributes. Such a mapping is
	// interned with start 0, and the addresses in it relative to its start; see Bases.
	// Mappings of no file ([heap], //anon) and locations outside their mapping stay as
	// they are.
	RebaseMappings bool
}

// Base is the original start of a rebased mapping.
type Base struct {
	Mapping int32 // index in the tables
	Start   uint64
}

// Bases returns the original starts of the mappings that r has rebased since Reset. A
// mapping may have several.
func (r *Remap) Bases() []Base { return r.bases }

// BeginBases makes AppendBases start again.
func (r *Remap) BeginBases() {
	r.basedStacks.reset(len(r.stacks.to))
	r.basedLocations.reset(len(r.locations.to))
}

// AppendBases appends those of Bases that come from stack i of the source, which has
// been interned; those of each location once since BeginBases.
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

// The size of a mapping is rounded up to a multiple of pageSize, as google/pprof does.
const pageSize = 0x1000

// position returns the mapping and the address that l is interned with. It does not look in a View
// for a mapping that may be rebased.
func (r *Remap) position(l pprofile.Location) (mapping int32, address uint64) {
	i, address := l.MappingIndex(), l.Address()
	if r.Coarsening.Granularity != ByAddress && !r.isExact(l) {
		address = 0
	}
	switch {
	case !r.Coarsening.RebaseMappings:
	case r.to == nil:
		r.Mapping(i)
		return absent, 0
	default:
		if start, is, inside := r.base(l); is {
			to := r.rebase(i)
			if inside {
				return to, max(address, start) - start
			}
		}
	}
	return r.Mapping(i), address
}

// isExact returns whether the address distinguishes l.
func (r *Remap) isExact(l pprofile.Location) bool {
	return r.Coarsening.Granularity == ByAddress || l.Lines().Len() == 0
}

// base returns the start of the mapping of l, whether that is rebased for l, and whether
// l is inside it. Others may have been rebased to one that starts at 0.
func (r *Remap) base(l pprofile.Location) (start uint64, is, inside bool) {
	start, limit, ok := r.span(l.MappingIndex())
	inside = !r.isExact(l) || start <= l.Address() && l.Address() <= limit
	return start, ok && (inside || start == 0), inside
}

// span returns the addresses of mapping i, if it can be rebased.
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

// rebase interns mapping i with start 0.
func (r *Remap) rebase(i int32) int32 {
	if to, ok := r.rebased.get(i); ok {
		return to
	}
	m := r.from.MappingTable().At(int(i))
	start, limit := m.MemoryStart(), m.MemoryLimit()
	to := r.mappingAt(m, 0, (limit-start+pageSize-1)/pageSize*pageSize)
	r.rebased.set(i, to)
	r.bases = append(r.bases, Base{to, start})
	return to
}

// line clears the fields of a line that do not distinguish locations.
func (r *Remap) line(l Line) Line {
	switch r.Coarsening.Granularity {
	case ByLine:
		l.Column = 0
	case ByFunction:
		l.Line, l.Column = 0, 0
	}
	return l
}
