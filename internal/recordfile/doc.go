// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package recordfile is files of records: their format, a Reader, a Writer and their indexes. A record is a
// non-empty byte slice.
//
// # Format
//
// A file is a sequence of records without header or trailer. Protobuf records are preceded
// by their length (4 bytes, big-endian), and JSON records end in a line feed. With a Compression, each record
// and its framing bytes are one gzip member or zstd frame with a checksum, so that the file is an ordinary
// gzip or zstd file.
//
// A name is profiles-<UTC time>-<sequence>.<content>[.gz|.zst], where content is otlp.pb or otlp.jsonl. The
// file being written has the suffix .partial as well. A file that replaces others has a time span after the sequence, such as
// .1h0m0s: it has the records of files that were created from its time on for so long.
//
// A Reader reports damage with its offset. Damage to a compressed record loses that record
// only. An uncompressed protobuf file is read up to its first damaged record.
//
// Records with a group are in a subdirectory for each of the group's names, which come from
// GroupName, TypedGroupName and Unset. Other is the directory of groups beyond a limit, and the
// name of no group.
//
// # Writing
//
// The file being written has an advisory lock while it is open. Of more groups than Options.MaxOpen, those used least
// recently are not open: the next record opens the file again, and checks that it is as it was left. A closed file was
// synced before it got its final name. It is never empty and never changes again. Only Retention removes it. A rename
// never replaces a file. Links are not followed.
//
// A write is a transaction: if Append fails, the Writer removes the record, at once or by a
// later retry. Only if the process dies before that, the record may survive. A Writer needs
// no restart after a fault: files that it cannot close are retried, and the next Append
// detects and recreates a file or directory that another process removed or changed.
//
// OpenWriter closes the incomplete (.partial) files of processes that no longer run: each
// is truncated after its last complete record, or removed if it has none. Several Writers may share a
// directory on systems with flock. File systems that do not support flock do not lock: there, only one
// Writer may use a directory.
//
// # Index
//
// A closed file has an index beside it, with the suffix .index, if all of its records came with
// Record.Summaries and they did not take too much memory while it was open; before that, its labels are left out. An index is a cache: it is written after the file got its name, without sync and without
// retry, and recovery creates none, so it can be missing or incomplete. Retention removes it with its file.
// ParseIndex rejects one with another version, of a file of another size, or that was damaged; the file is
// read instead.
//
// An index is text:
//
//	{"version":5,"size":2468,"checksum":2596996162}
//	{"labels":{"k8s.pod.name":["checkout-1","checkout-2"],"service.name":["checkout"],"trace_id":null}}
//	{"service":"checkout","type":"cpu","sample_type":"samples","unit":"count","period_type":"cpu","period_unit":"nanoseconds",
//	  "start":1700000000000000000,"latest":1700000010000000000,"end":1700000020000000000,"profiles":2,"samples":1200,"sum":48211}
//	0 1234 0 1700000000000000000 0 10000000000 10000000000 1 600 24071
//	1234 1234 0 1700000010000000000 0 10000000000 10000000000 1 600 24140
//
// The first line has the version of the format, the size of the file in bytes, and the CRC-32C of the
// rest of the index. The second has the attributes of resources, Profiles and samples with their values, or null if there
// are too many: see [labels.Set]. The lines of JSON after it (each a single line) are the totals of the file, a [Summary]
// for each [Key]. Each further line describes a record: the offset and length of its bytes in the file, and for each
// Key its position in the totals, start, latest minus start, end minus start, covered, profiles, samples and sum.
package recordfile
