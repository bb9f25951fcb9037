// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"bytes"
	"math"
	"slices"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// One program has other addresses in each process. A mapping is relocatable if it names the code that it maps: then it has
// the same code at the same distance from its start in each process. The tables hold such mappings as images.
//
// An image is a mapping without its addresses. Mappings are one image if they agree in build IDs or else file, in offset, in
// size rounded up to pages, and in all other attributes. The address of a location in an image is its distance from the
// start plus one, or 0 for none. An output has the image where the first of its mappings was, as long as the longest.

// buildIDs are the keys of build IDs of a mapping.
var buildIDs = [...]string{
	string(semconv.ProcessExecutableBuildIDGNUKey), string(semconv.ProcessExecutableBuildIDGoKey),
	string(semconv.ProcessExecutableBuildIDHtlhashKey),
}

// image is where an image is in the output. Images of no mappings are zero.
type image struct {
	start uint64
	file  int32  // the least file name that is not empty, so that the order of mappings does not count
	short uint16 // what the longest mapping lacks to whole pages
}

// The first byte of the key of a mapping.
const (
	keyOfMapping byte = iota
	keyOfImage
)

const pageSize = 4096

// pages rounds a size up, as google/pprof does when it merges.
func pages(size uint64) uint64 { return (size + pageSize - 1) &^ (pageSize - 1) }

// canMove returns whether m can be anywhere: it has no addresses, or some that leave room for the longest mapping of its
// image.
func (m *Mapping) canMove() bool {
	if m.MemoryStart >= m.MemoryLimit {
		return m.MemoryStart == 0 && m.MemoryLimit == 0
	}
	return m.MemoryLimit <= math.MaxUint64-pageSize
}

// Image interns m, which must be relocatable, without its addresses. hasBuildID says that it has a build ID, so that its file
// name does not count.
func (t *Tables) Image(m Mapping, hasBuildID bool) int32 {
	size := m.MemoryLimit - m.MemoryStart
	at := image{m.MemoryStart, m.Filename, uint16(pages(size) - size)}
	m.MemoryStart, m.MemoryLimit = 0, pages(size)
	if hasBuildID {
		m.Filename = 0
	}
	count := t.mappings.len()
	i := t.internMapping(keyOfImage, &m)
	if t.mappings.len() > count {
		t.images = append(t.images, make([]image, t.mappings.len()-len(t.images))...)
		t.images[i] = at
	}
	if i == 0 { // the table is full
		return 0
	}
	known := &t.images[i]
	known.short = min(known.short, at.short)
	if known.file != at.file && at.file != 0 &&
		(known.file == 0 || bytes.Compare(t.strings.at(at.file), t.strings.at(known.file)) < 0) {
		known.file = at.file
	}
	return i
}

// imageOf returns the image that mapping i is, or nil.
func (t *Tables) imageOf(i int32) *image {
	if t.mappings.at(i)[0] != keyOfImage {
		return nil
	}
	return &t.images[i]
}

// readMapping decodes mapping i into m. That of an image starts at 0, and has its size and file name.
func (t *Tables) readMapping(i int32, m *Mapping) {
	m.Decode(t.mappings.at(i)[1:])
	if image := t.imageOf(i); image != nil {
		m.MemoryLimit, m.Filename = m.MemoryLimit-uint64(image.short), image.file
	}
}

// moves returns which locations of m are the same code in another process: all if m has a build ID, and those with lines if its
// file is one that another process would open under this path.
func (t *Tables) moves(m *Mapping) moves {
	if slices.ContainsFunc(m.Attributes, t.isBuildID) {
		return movesAll
	}
	if namesCode(t.strings.at(m.Filename)) {
		return movesWithLines
	}
	return movesNone
}

// isBuildID returns whether an attribute is a build ID.
func (t *Tables) isBuildID(attribute int32) bool {
	var a Attribute
	a.Decode(t.attributes.at(attribute))
	const empty = 2 // a tag and a length
	return len(a.Value) > empty && a.Value[0] == tagString && slices.Contains(buildIDs[:], string(t.strings.at(a.Key)))
}

// namesCode returns whether another process has the same under this path: it is absolute, and not of memory, a device, shared
// memory, a deleted file, or code that a just-in-time compiler made. A regular expression takes as long as all the rest.
func namesCode(path []byte) bool {
	if len(path) == 0 || path[0] != '/' || bytes.HasSuffix(path, []byte(" (deleted)")) {
		return false
	}
	for _, prefix := range []string{"//", "/dev/", "/memfd:", "/SYSV"} {
		if len(path) >= len(prefix) && string(path[:len(prefix)]) == prefix {
			return false
		}
	}
	pid, isMap := bytes.CutSuffix(path[bytes.LastIndexByte(path, '/')+1:], []byte(".map"))
	pid, isPerf := bytes.CutPrefix(pid, []byte("perf-"))
	return !isMap || !isPerf || len(pid) == 0 || len(bytes.Trim(pid, "0123456789")) > 0
}

// placement is what a Remap knows of a mapping of its source to place locations in it. The zero value knows nothing.
type placement struct {
	start, size uint64 // the addresses that move; size is 0 if none do
	image       int32  // the index in the tables plus one; 0 before a location is in it
	moves       moves
}

// moves says which locations of a mapping are in its image.
type moves uint8

const (
	movesUnknown moves = iota
	movesNone
	movesWithLines
	movesAll
)

// place returns the mapping of a location in the tables, and the address of the location there. A location is in an image if
// its address is in the mapping, or is 0, and if a build ID or its lines vouch for its code; otherwise it keeps its address.
func (r *Remap) place(mapping int32, address uint64, hasLines bool) (to int32, at uint64) {
	p := &r.placements[mapping]
	var m *Mapping
	if p.moves == movesUnknown {
		m = r.readPlacement(mapping, p)
	}
	distance := address - p.start
	if p.moves == movesNone || p.moves == movesWithLines && !hasLines || distance >= p.size && address != 0 {
		return r.Mapping(mapping), address
	}
	if p.image == 0 {
		if m == nil {
			m = r.readMapping(mapping)
		}
		p.image = r.to.Image(*m, p.moves == movesAll) + 1
	}
	if address == 0 {
		return p.image - 1, 0
	}
	return p.image - 1, distance + 1
}

// readPlacement fills p. It returns the mapping, if there is one, in memory that the next call of readMapping overwrites.
func (r *Remap) readPlacement(mapping int32, p *placement) *Mapping {
	p.moves = movesNone
	if r.from.MappingTable().Len() == 0 {
		return nil
	}
	m := r.readMapping(mapping)
	if m.canMove() {
		p.moves = r.to.moves(m)
		p.start, p.size = m.MemoryStart, m.MemoryLimit-m.MemoryStart
	}
	if p.size == 0 { // it has no addresses, those of its locations are of the file
		p.size = math.MaxUint64
	}
	return m
}
