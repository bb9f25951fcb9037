// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import "encoding/binary"

// lengthDelimited is the wire type of protobuf for strings, bytes and messages.
const lengthDelimited = 2

// isMessage says whether data is one or more length-delimited protobuf fields
// from its first byte to its last, as an OTLP ProfilesData always is. It looks
// into no field.
func isMessage(data []byte) bool {
	if len(data) == 0 {
		return false
	}
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == 0 || tag&7 != lengthDelimited {
			return false
		}
		data = data[n:]
		length, n := binary.Uvarint(data)
		if n <= 0 || length > uint64(len(data)-n) {
			return false
		}
		data = data[n+int(length):]
	}
	return true
}
