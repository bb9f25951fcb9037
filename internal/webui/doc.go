// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package webui shows a profile with pprof's own views: [Handler] is its web UI, [Top] its
// table of functions. Two pages are ours. The graph limits the time of Graphviz and gives it no names
// with a meaning in its language. The flame graph draws 100,000 boxes without a pause, and differences with both sides.
// [Tree] is the call tree of that flame graph and of the query API's. [Prune] bounds the memory that the pages take. The file
// text.go writes numbers, durations and times for people.
//
// Nothing but the profile is read. The pages that open source files or binaries and those that
// save settings are not mounted: a profile may name any path of the host.
package webui
