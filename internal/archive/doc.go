// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package archive reads profile files of any program.
//
// A format is recognized by content, not by name: OTLP protobuf, bare or preceded by its
// length; OTLP/JSON, one payload a line or one in a file; pprof, also in the formats from
// before protobuf; JFR recordings; folded stacks. Each may be compressed by gzip or zstd, as a whole or
// record by record. This covers the files of the profiles_file exporter and of contrib's
// file exporter.
//
// [Find] lists the files of paths, and [Options.Records] yields the records of a file, one
// at a time: a record is one payload in its encoding. [Record.Profiles] decodes it. A file that
// is being written is read up to its last complete record. Damage is reported as an
// [Error] with file, record and reason, and reading continues after it where the format
// allows that.
//
// Options.MaxMemory bounds the memory of a record, raw and decoded, also if a file lies about
// its lengths.
package archive
