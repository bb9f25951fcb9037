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

// Field numbers of ProfilesData.
const (
	resourceProfilesField = 1
	dictionaryField       = 2
)

// isProtobuf says whether data is protobuf fields from its first byte to its last.
func isProtobuf(data []byte) bool {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
			return false
		}
		data = data[n:]
		var size int
		switch tag & 7 {
		case 0:
			if _, size = binary.Uvarint(data); size <= 0 {
				return false
			}
		case 1:
			size = 8
		case lengthDelimited:
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) {
				return false
			}
			size = n + int(length)
		case 5:
			size = 4
		default:
			return false
		}
		if size > len(data) {
			return false
		}
		data = data[size:]
	}
	return true
}

// isProfilesData says whether data, a message of length-delimited fields, has the
// fields of ProfilesData only, and in each of them protobuf. It is to tell a record
// from what looks like one at the wrong place.
func isProfilesData(data []byte) bool {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if field := tag >> 3; field != resourceProfilesField && field != dictionaryField {
			return false
		}
		length, m := binary.Uvarint(data[n:])
		end := n + m + int(length)
		if !isProtobuf(data[n+m : end]) {
			return false
		}
		data = data[end:]
	}
	return true
}
