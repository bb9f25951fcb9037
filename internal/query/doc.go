// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package query selects profiles from files and sums them.
//
// A [Selection] says which: profiles by service, type, attributes and start, in [From, To);
// samples with timestamps by their timestamps, so that adjacent ranges add up exactly.
//
// [Source.Merge] sums the selected Profiles. Values of intervals, such as CPU time, are summed. Of
// snapshots, such as the heap in use, and of cumulative profiles the last one of each resource
// counts, and these are summed. [sampletypes.IsSnapshot] tells them apart. [Result.Pprof] makes one pprof of
// the result.
//
// [Compare] compares two selections: rates of intervals, and snapshots of living processes, of functions, too. [Source.Growths]
// compares the end of a range with its start. Nothing else compares anything.
//
// [Source.List] returns totals by service and type, by the same rules. A [Tally] adds them up, those of pages, too.
package query
