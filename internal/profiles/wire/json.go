// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// JSONMeter is a Meter of a message in JSON, which it does not read exactly: it counts objects and values. The
// message takes at most twice its Size. A value that nests up to two lists deeper than a Meter accepts may pass.
type JSONMeter struct {
	Limit int64 // in bytes; more is ErrLimit. 0 means no limit.
	Size  int64 // in bytes

	inString, escaped bool
	lists             int // open ones
}

// Write reads further bytes of the message.
func (m *JSONMeter) Write(p []byte) (n int, err error) {
	const object, value = 128, 16 // bytes in memory
	m.Size += int64(len(p))
	for _, b := range p {
		switch {
		case m.escaped:
			m.escaped = false
		case m.inString:
			m.inString, m.escaped = b != '"', b == '\\'
		case b == '"':
			m.inString = true
		case b == '{', b == 'n': // pdata decodes null as an empty object
			m.Size += object
		case b == ',':
			m.Size += value
		case b == '[':
			if m.lists++; m.lists > maxLists+listsAround {
				return 0, ErrTooDeep
			}
		case b == ']':
			m.lists--
		}
	}
	if m.Limit > 0 && m.Size > m.Limit {
		return 0, ErrLimit
	}
	return len(p), nil
}
