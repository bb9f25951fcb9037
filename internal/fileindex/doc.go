// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package fileindex builds, encodes and decodes the index of a profile file. It states what the file and each of
// its records hold, so that a reader need not read the file.
//
// An index is text. Each line is a JSON object:
//
//	{"version":2,"size":2468,"checksum":2596996162}
//	{"series":[{"service":"checkout","type":"cpu","sample_type":"samples","unit":"count",
//	  "start":1700000000000000000,"latest":1700000010000000000,"end":1700000020000000000,
//	  "profiles":2,"samples":1200,"sum":48211}]}
//	{"offset":0,"length":1234,"series":[[0,1700000000000000000,0,10000000000,1,600,24071]]}
//	{"offset":1234,"length":1234,"series":[[0,1700000010000000000,0,10000000000,1,600,24140]]}
//
// The first line has the version of the format, the size of the file in bytes, and the CRC-32C of the
// rest of the index. The second one (a single line) has the totals of the file, a [Summary] for each
// [Key]. Each further line describes a record: the place of its bytes in the file, and for each Key the
// position in the totals, start, latest minus start, end minus start, profiles, samples and sum. An index
// has no lines of records if they would have taken too much memory while the file was open.
//
// An index is a cache. Parse rejects one with another version, of a file of another size, or that was
// damaged; the file is read instead.
package fileindex
