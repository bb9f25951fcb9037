// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package dictionary builds and merges the seven tables of an OTLP ProfilesDictionary:
// string, mapping, location, function, link, attribute, stack.
//
// [Check] validates a payload, [ResolveStrings] replaces the string references that pdata hides, and [CheckToMerge] does
// both. A [Remap] then
// interns the entries that the payload refers to in [Tables], and a [Writer] writes the part of
// them that an output refers to, sorted. Translators write all entries in the order in which they came
// ([Tables.Write]). A [Splitter] copies resources out of a payload.
//
// The package promises:
//
//   - Index 0 is the zero value of each table.
//   - An entry is found by its whole value, never by a hash alone. Attribute indices are
//     a set; lines and the locations of a stack keep their order; int 1 is not "1";
//     key-value lists compare without order; -0.0 equals 0.0; NaN equals NaN by bits.
//   - With [Remap.Relocate], locations of one program are equal at the same distance from the start of their mapping.
//   - Hashes are keyed anew in each process, so that no input can be made to collide.
//   - An entry takes a few bytes of one large slice, not an object of the heap.
//   - Strings are valid UTF-8: other bytes are escaped as \xff, and repairs are counted.
//
// An entry is stored as its key: varints of its fields for a mapping, location, function or attribute, four bytes an index
// for a stack or an attribute set, the ids of a link, the text of a string. Where a key has indices, their tables hold
// each value once, so that equal keys mean equal values, recursively.
package dictionary
