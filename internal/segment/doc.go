// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package segment writes records, which are non-empty byte slices, into files and reads
// them back.
//
// A file is a sequence of records without header or trailer. Protobuf records are preceded
// by their length (4 bytes, big-endian), and JSON records end in a line feed; a bare file is
// a single record. With a Compression, each record and its framing bytes are one gzip member
// or zstd frame with a checksum, so that the file is an ordinary gzip or zstd file.
//
// A name is profiles-<UTC time>-<sequence>.<content>[.gz|.zst], where content is otlp.pb,
// otlp.jsonl or pprof.pb. The name of a pprof file starts with the escaped profile type instead
// of profiles, if the record has one. The file being written has the suffix .partial as well
// (.bare.partial if it is bare), and an advisory lock. A closed file was
// synced before it got its final name. It is never empty and never changes again. Only
// Retention removes it, with one exception: a bare file whose directory cannot be synced is
// removed again, because its record is not acknowledged. A rename never replaces a file.
//
// A closed file has an index beside it, with the suffix .index, if all of its records came with
// Record.Summaries; the package fileindex has its format. An index is a cache: it is written after the
// file got its name, without sync and without retry, and recovery creates none, so it can be missing or
// incomplete. Retention removes it with its file.
//
// A write is a transaction: if Append fails, the Writer removes the record, at once or by a
// later retry. Only if the process dies before that, the record may survive. A Writer needs
// no restart after a fault: files that it cannot close are retried, and the next Append
// detects and recreates a file or directory that another process removed or changed.
//
// OpenWriter closes the incomplete (.partial) files of processes that no longer run: each
// is truncated after its last complete record, or removed if it has none. A bare one is
// always removed. Several Writers may share a directory on systems with flock. File
// systems that do not support flock do not lock: there, only one Writer may use a directory.
//
// A Reader reports damage with its offset. Damage to a compressed record loses that record
// only. An uncompressed file is read up to its first damaged record.
//
// Records with a group go to a subdirectory for each of the group's names, which come from
// GroupName, TypedGroupName and Unset. Groups beyond Options.MaxGroups share the directory
// Other, which is the name of no group. Links are not followed.
package segment
