// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog holds the content of the profile files of a directory: services, profile types, times and
// sums.
//
// It reads a closed file once, or its index, and a file that is being written again when it has
// grown. Before it has read a file, the time in its name and the time of its last write say which
// ranges it may belong to: a Profile starts before it is written, and not long before its file is created.
// Profiles with other times are found once a range was asked for in which their file was written.
//
// The details of files take a bounded part of memory. Those that were used least are dropped and read
// again.
package catalog
