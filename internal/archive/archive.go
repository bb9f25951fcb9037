// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package archive reads profile files of any program.
//
// A format is recognized by content, not by name: OTLP protobuf, bare or preceded by its
// length; OTLP/JSON, one payload a line or one in a file; pprof, also in the formats from
// before protobuf; JFR recordings; execution traces of Go; the output of perf script; folded stacks. Each may
// be compressed by gzip or zstd, as a whole or record by record. This covers contrib's file exporter, and single
// files of the profiles_file exporter: which files of its directory count is known to internal/store only.
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

import (
	"cmp"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// Options say how to read files.
type Options struct {
	// MaxMemory bounds the memory in bytes that reading takes: a record may have an eighth of it
	// and take a quarter when it is decoded.
	MaxMemory int64
	// MaxRecord is the size in bytes that a record may have, if that is not an eighth of MaxMemory.
	MaxRecord int64
	// Setting is the name of the setting that limits the memory, for errors.
	Setting string
	// Stats counts the reads of files of the operating system, unless it is nil.
	Stats *Stats
}

func (o *Options) maxRecord() int64 {
	return min(cmp.Or(o.MaxRecord, o.MaxMemory/8), segment.MaxRecordSize)
}

// raise is the advice for a record that is too large.
func (o *Options) raise() string { return "raise " + cmp.Or(o.Setting, "the memory limit") }

// tooLarge is the error of a record of more than maxRecord bytes; size is 0 if it is not known.
func (o *Options) tooLarge(what string, size int64) error {
	return o.overLimit(what, size, o.maxRecord())
}

func (o *Options) overLimit(what string, size, limit int64) error {
	if size == 0 {
		return fmt.Errorf("%s has more than %s: %s", what, mebibytes(limit), o.raise())
	}
	return fmt.Errorf("%s has %s, more than %s: %s", what, mebibytes(size), mebibytes(limit), o.raise())
}

// Damage is the error of a damaged part of a segment, in place of the record with a number.
func (o *Options) Damage(path string, number int, damage *segment.DamageError) *Error {
	return &Error{File: path, Record: number, Offset: damage.Offset, Err: o.reasonOf(damage)}
}

// reasonOf says what is wrong with a part of a segment: a record in it may only be too large.
func (o *Options) reasonOf(damage *segment.DamageError) error {
	if tooLarge, is := errors.AsType[*segment.SizeError](damage.Reason); is {
		return o.overLimit("the record", tooLarge.Size, int64(tooLarge.Max))
	}
	return fmt.Errorf("%w; skipped %d bytes", damage.Reason, damage.Length)
}

func (o *Options) maxDecoded() int64 { return o.MaxMemory / 4 }

// Record is one payload of a file.
type Record struct {
	File     string
	Number   int   // from 1
	Offset   int64 // where it starts in the file, or -1
	Encoding Encoding
	// Data is valid until the next record is read. A part of a recording, trace or perf script has none.
	Data []byte

	options *Options
	stored  bool  // in a segment, whose writer bounds its records
	size    int64 // decoded, in bytes; 0 if it was not estimated
	// translated is a chunk of a recording or a slice of an execution trace.
	translated pprofile.Profiles
}

// RecordOf returns a record of a segment. It is decoded as those that Records yields, and always if it takes no more than
// segment.MaxRecordMemory.
func (o *Options) RecordOf(record Record) *Record {
	record.options, record.stored = o, true
	return &record
}

// Fail returns err as an *Error of the record.
func (r *Record) Fail(err error) error {
	return &Error{File: r.File, Record: r.Number, Offset: r.Offset, Err: err}
}

// Error says what is wrong with a file or with a record of it.
type Error struct {
	File string
	// Record is the number of the record, from 1, or 0 if the error concerns the file.
	Record int
	// Offset is where the record starts in the file, -1 if that is not known, as in a file that is
	// compressed as a whole.
	Offset int64
	// Services are those that the error concerns, nil if it may be any.
	Services []string
	Err      error
}

func (e *Error) Error() string {
	return e.File + ": " + e.InFile()
}

// InFile is the text of Error without the file.
func (e *Error) InFile() string {
	switch {
	case e.Record == 0:
		return e.Err.Error()
	case e.Offset < 0:
		return fmt.Sprintf("record %d: %v", e.Record, e.Err)
	}
	return fmt.Sprintf("record %d at byte %d: %v", e.Record, e.Offset, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// TooLarge is the error of a record of more bytes than the options allow; size is 0 if it is not known.
func (o *Options) TooLarge(size int64) error { return o.tooLarge("the record", size) }
