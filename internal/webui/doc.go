// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package webui has what the web page and otelprof write for people: flame graphs, numbers, durations and times.
//
// [Tree] is the call tree of flame graphs, also of those of the query API. [Prune] bounds the memory that a flame graph takes.
// [Protect] guards an HTTP server that a browser on this computer reaches. The page itself is in the package page.
//
// Nothing but the profile is read: it may name any path of the host.
package webui
