// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package merge makes one canonical payload of many. It has no clock, no goroutine and
// no lock.
//
// [Check] accepts or rejects a payload and describes its Profiles; it is safe for concurrent use. A [Window]
// merges accepted payloads and emits the result, one payload for each partition of [Options.SplitBy]. Its methods are
// not safe for concurrent use. [Window.Add] reads each sample once, and interns the entries of the dictionary that the
// sample is the first to refer to.
//
// Profiles merge when slot, resource, scope, sample type, period type, period, attributes and
// sample shape (values, timestamps or both) are equal. A slot is the span of the clock in
// which a Profile ends, see [Options.SlotLength]. A merged Profile covers the time
// of all its sources, and has a table of the time and value of each of their processes (internal/profiles/processes). Values are summed by sample identity, which is {stack, set
// of attributes, link}; a sum beyond int64 stays at the largest or smallest int64, and is counted. Timestamps and
// their values are appended. [Snapshots] says how snapshots merge. Original payloads are left out.
//
// Locations that are the same code of one program in several processes are equal: see internal/profiles/dictionary. The output has
// the addresses of the first process.
//
// A payload that Check or Add rejects leaves the window unchanged. The same intervals
// give the same bytes apart from these addresses, in any order and any split into payloads that keeps the Profiles of a scope together, unless
// a sum is beyond int64: merged Profiles are in the order of their sources in their scopes.
//
// A compactor's window divides intervals at the borders of slots: see [Options.SlotByStart].
//
// [Delta] takes one snapshot of a process off a later one.
package merge
