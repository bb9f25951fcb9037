// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package webui shows a profile with pprof's own views: [Handler] is its web UI, [Top] its
// table of functions. The page of the graph is ours: it limits the time of Graphviz and gives it no names
// with a meaning in its language. [Prune] bounds the memory that the pages take.
//
// Nothing but the profile is read. The pages that open source files or binaries and those that
// save settings are not mounted: a profile may name any path of the host.
package webui
