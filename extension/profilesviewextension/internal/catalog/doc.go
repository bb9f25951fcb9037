// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package catalog holds the content of the profile files of a directory: services, profile types, times and
// sums.
//
// It reads a closed file once, or its index, and of a file that is being written what was added. Before it has read a
// file, the time in its name and the time of its last write say which ranges it most likely belongs to, and a request reads
// the files of its range: a Profile starts before it is written, and mostly not long before its file is created. Profiles may
// have any other time, so each request also reads further files for a bounded time, until all were read.
// [Found] says how many were not.
//
// The details of files take a bounded part of memory. Those that were used least recently are dropped and read
// again. A list of many files takes long, so that it is made beside the requests, which use the last one meanwhile.
package catalog
