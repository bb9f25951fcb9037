// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package symbolize gives functions, files and lines to locations of profiles that have only addresses.
//
// [Profiles] looks up the locations of a payload that have an address, no lines, and a mapping with GNU's build ID. A
// [Store] has the symbol tables by build ID: it finds files in directories and on debuginfod servers, makes a table of
// each once, with [symbols.Build], and keeps the tables in a directory of limited size.
//
// A call stands at the address before its return address. Profilers give the latter, or an address within the call
// already; so the address of a location that is not the leaf of a stack is looked up one lower.
package symbolize
