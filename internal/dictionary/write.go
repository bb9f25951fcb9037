// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// writeStrings fills the string table of dst, which must be empty. One allocation
// holds all of them.
func writeStrings(dst pprofile.ProfilesDictionary, keys []byte, ends []uint32) {
	all := string(keys)
	table := dst.StringTable()
	table.EnsureCapacity(len(ends))
	start := uint32(0)
	for _, end := range ends {
		table.Append(all[start:end])
		start = end
	}
}

func (m *Mapping) write(dst pprofile.Mapping) {
	dst.SetMemoryStart(m.MemoryStart)
	dst.SetMemoryLimit(m.MemoryLimit)
	dst.SetFileOffset(m.FileOffset)
	dst.SetFilenameStrindex(m.Filename)
	if len(m.Attributes) > 0 {
		dst.AttributeIndices().FromRaw(m.Attributes)
	}
}

func (l *Location) write(dst pprofile.Location) {
	dst.SetMappingIndex(l.Mapping)
	dst.SetAddress(l.Address)
	if len(l.Lines) > 0 {
		lines := dst.Lines()
		if len(l.Lines) > 1 {
			lines.EnsureCapacity(len(l.Lines))
		}
		for _, from := range l.Lines {
			line := lines.AppendEmpty()
			line.SetFunctionIndex(from.Function)
			line.SetLine(from.Line)
			line.SetColumn(from.Column)
		}
	}
	if len(l.Attributes) > 0 {
		dst.AttributeIndices().FromRaw(l.Attributes)
	}
}

func (f *Function) write(dst pprofile.Function) {
	dst.SetNameStrindex(f.Name)
	dst.SetSystemNameStrindex(f.SystemName)
	dst.SetFilenameStrindex(f.Filename)
	dst.SetStartLine(f.StartLine)
}

func writeLink(dst pprofile.Link, key []byte) {
	dst.SetTraceID([16]byte(key[:16]))
	dst.SetSpanID([8]byte(key[16:]))
}

func (a attribute) write(dst pprofile.KeyValueAndUnit) {
	dst.SetKeyStrindex(a.key)
	dst.SetUnitStrindex(a.unit)
	r := reader{a.value}
	writeValue(&r, dst.Value())
}

func writeStack(dst pprofile.Stack, locations []int32) {
	if len(locations) > 0 {
		dst.LocationIndices().FromRaw(locations)
	}
}

func equalIndices(a pcommon.Int32Slice, b []int32) bool {
	if a.Len() != len(b) {
		return false
	}
	for i, index := range b {
		if a.At(i) != index {
			return false
		}
	}
	return true
}
