// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package segment is the format of files of records, which are non-empty byte slices: the names of the files
// and of their directories, the encoding of a record, and a Reader of a file. Package recordstore writes the
// files.
//
// A file is a sequence of records without header or trailer. Protobuf records are preceded
// by their length (4 bytes, big-endian), and JSON records end in a line feed; a bare file is
// a single record. With a Compression, each record and its framing bytes are one gzip member
// or zstd frame with a checksum, so that the file is an ordinary gzip or zstd file.
//
// A name is profiles-<UTC time>-<sequence>.<content>[.gz|.zst], where content is otlp.pb,
// otlp.jsonl or pprof.pb. The name of a pprof file starts with the escaped profile type instead
// of profiles, if the record has one. The file being written has the suffix .partial as well
// (.bare.partial if it is bare).
//
// A Reader reports damage with its offset. Damage to a compressed record loses that record
// only. An uncompressed protobuf file is read up to its first damaged record.
//
// Records with a group are in a subdirectory for each of the group's names, which come from
// GroupName, TypedGroupName and Unset. Other is the directory of groups beyond a limit, and the
// name of no group.
package segment
