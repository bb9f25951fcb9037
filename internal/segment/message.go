// Copyright The otelcol-profiles Authors
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

// Tags of the fields of ProfilesData: any number of the first, one of the second.
const (
	resourceProfilesTag = 1<<3 | lengthDelimited
	dictionaryTag       = 2<<3 | lengthDelimited
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

// isProfilesData says whether data is a ProfilesData message as protobuf libraries
// write it: resources and one dictionary, whose first string is the empty one, and
// in each length-delimited fields only. It is to tell a record from what looks like
// one at the wrong place.
func isProfilesData(data []byte) bool {
	dictionaries := 0
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return false
		}
		length, m := binary.Uvarint(data[n:])
		if m <= 0 || length > uint64(len(data)-n-m) {
			return false
		}
		field := data[n+m : n+m+int(length)]
		switch {
		case tag == dictionaryTag && isDictionary(field):
			dictionaries++
		case tag == resourceProfilesTag && (length == 0 || isMessage(field)):
		default:
			return false
		}
		data = data[n+m+int(length):]
	}
	return dictionaries == 1
}

// stringTableTag is that of the strings of a ProfilesDictionary.
const stringTableTag = 5<<3 | lengthDelimited

func isDictionary(data []byte) bool {
	if !isMessage(data) {
		return false
	}
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		length, m := binary.Uvarint(data[n:])
		if tag == stringTableTag {
			return length == 0
		}
		data = data[n+m+int(length):]
	}
	return false
}
