// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// seed keys the hashes of all tables, so that no input can be made to collide.
var seed = maphash.MakeSeed()

// fold mixes a and b into h by a 128-bit multiplication, keyed as seed keys hashOf.
func fold(h, a, b uint64) uint64 {
	hi, lo := bits.Mul64(h^a^secrets[0], b^secrets[1])
	return hi ^ lo
}

var secrets = [2]uint64{rand.Uint64(), rand.Uint64()}

func hashOf(entry []byte) uint32 { return uint32(maphash.Bytes(seed, entry)) }

func hashFunction(f *Function) uint32 {
	h := fold(0, uint64(uint32(f.Name))<<32|uint64(uint32(f.SystemName)), uint64(uint32(f.Filename)))
	return uint32(fold(h, uint64(f.StartLine), 0))
}

func equalFunctions(f *Function, other pprofile.Function) bool {
	return f.Name == other.NameStrindex() && f.SystemName == other.SystemNameStrindex() &&
		f.Filename == other.FilenameStrindex() && f.StartLine == other.StartLine()
}

// hashLocation marks columns and attributes, so that no other location has the same sequence.
func hashLocation(l *Location) uint32 {
	const column, attribute = 1 << 32, 2 << 32
	h := fold(0, l.Address, uint64(uint32(l.Mapping)))
	for _, line := range l.Lines {
		h = fold(h, uint64(line.Line), uint64(uint32(line.Function)))
		if line.Column != 0 {
			h = fold(h, uint64(line.Column), column)
		}
	}
	for _, a := range l.Attributes {
		h = fold(h, uint64(uint32(a)), attribute)
	}
	return uint32(fold(h, 0, 0))
}

func equalLocations(l *Location, other pprofile.Location) bool {
	lines := other.Lines()
	if l.Address != other.Address() || l.Mapping != other.MappingIndex() || len(l.Lines) != lines.Len() {
		return false
	}
	for i, line := range l.Lines {
		to := lines.At(i)
		if line.Function != to.FunctionIndex() || line.Line != to.Line() || line.Column != to.Column() {
			return false
		}
	}
	return equalIndices(other.AttributeIndices(), l.Attributes)
}

func equalIndices(s pcommon.Int32Slice, indices []int32) bool {
	if s.Len() != len(indices) {
		return false
	}
	for i, index := range indices {
		if s.At(i) != index {
			return false
		}
	}
	return true
}
