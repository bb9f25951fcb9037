// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire

// message describes how pdata holds a message in memory.
type message struct {
	size   int64            // bytes without its fields of variable length
	nested [fields]*message // by field number
	// packed are numbers of packed varints, which take 8 bytes each or, for indices, 4.
	packed [fields]int64
	isList bool // of attribute values
}

// fields is the number of field numbers. Others have no meaning.
const fields = 12

// header is the size of a string in bytes, or the rounding of a slice.
const header = 16

// maxLists bounds how deep lists in an attribute value nest.
const maxLists = 64

// listsAround are the most lists of JSON around an attribute value: resources, scopes and their attributes.
const listsAround = 3

// The messages of OTLP profiles, with the size of their types in pdata and of the pointer to them.
var (
	anyValue         = &message{size: 24}
	keyValue         = &message{size: 64, nested: [fields]*message{2: anyValue}}
	entityRef        = &message{size: 88}
	resource         = &message{size: 64, nested: [fields]*message{1: keyValue, 3: entityRef}}
	scope            = &message{size: 96, nested: [fields]*message{3: keyValue}}
	sample           = &message{size: 120, packed: [fields]int64{2: 4, 4: 8, 5: 1}}
	profileMessage   = &message{size: 280, nested: [fields]*message{2: sample}, packed: [fields]int64{11: 4}}
	scopeProfiles    = &message{size: 180, nested: [fields]*message{1: scope, 2: profileMessage}}
	resourceProfiles = &message{size: 140, nested: [fields]*message{1: resource, 2: scopeProfiles}}
	tables           = &message{size: 200, nested: [fields]*message{
		1: {size: 80, packed: [fields]int64{5: 4}},                                          // mapping
		2: {size: 88, nested: [fields]*message{3: {size: 32}}, packed: [fields]int64{4: 4}}, // location, line
		3: {size: 40},                                                                       // function
		4: {size: 32},                                                                       // link
		6: {size: 64, nested: [fields]*message{2: anyValue}},                                // attribute
		7: {size: 32, packed: [fields]int64{1: 4}},                                          // stack
	}}
	profilesData = &message{size: 64, nested: [fields]*message{1: resourceProfiles, 2: tables}}
)

func init() {
	// Lists of values and of pairs nest.
	anyValue.nested = [fields]*message{
		5: {size: 32, nested: [fields]*message{1: anyValue}, isList: true},
		6: {size: 32, nested: [fields]*message{1: keyValue}, isList: true},
	}
}
