// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// SampleSize is that of a sample without its fields of variable length, in bytes.
var SampleSize = sample.size

// Header is that of a string in bytes.
const Header = header

// Recursive is what a Meter adds up, in a slower and plainer form.
func Recursive(data []byte) int64 { return recursive(profilesData, New(data)) }

func recursive(m *message, c Cursor) int64 {
	size := m.size
	for c.Next() {
		switch nested := m.nested[c.Field]; {
		case c.Type != BytesType:
			size += m.packed[c.Field]
		case nested != nil:
			size += recursive(nested, c.Message())
		default:
			size += header + int64(c.Stop-c.Start)*max(1, m.packed[c.Field])
		}
	}
	return size
}
