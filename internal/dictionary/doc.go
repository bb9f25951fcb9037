// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package dictionary holds the seven tables of an OTLP ProfilesDictionary
// (string, mapping, location, function, link, attribute, stack) while they are
// being built or merged.
//
// It promises:
//
//   - Index 0 is the zero value of each table, always, in an empty one too.
//   - Exact: an entry is found by its whole value, never by a hash alone.
//     Attribute indices are a set; lines and the locations of a stack keep
//     their order; int 1 is not "1"; key-value lists compare without order;
//     -0.0 equals 0.0; NaN equals NaN by bits.
//   - Check, then apply: [Check] reads all of what comes from outside before
//     anything is changed, and [Tables.Rollback] takes back what an addition
//     that failed half-way has added.
//   - Lean: an entry is a run of bytes in an arena and a slot of an index, not
//     an object of the heap.
//   - Valid UTF-8: bytes that are not are replaced by U+FFFD before interning,
//     and counted.
//
// Each entry is stored as its binary key: the concatenated varints of its
// fields, with indices into the other tables where the format has indices. As
// those tables hold each value once, equal keys mean equal values, recursively.
package dictionary
