// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfrtranslator turns recordings of the JVM (JDK Flight Recorder, JFR) into OTLP
// profiles: those of the JDK itself, of async-profiler and agents built on it, and of
// Datadog's library.
//
// A recording is a sequence of chunks. A chunk has events, metadata that describes the
// fields of each type of event and constant, and constant pools that events refer to. IDs are
// valid in their chunk only. The package reads fields as the metadata of their chunk
// orders them, never by a fixed layout. Events that are not samples are counted.
//
// Samples whose fields have equal bytes, except for their time and values, are summed as they are. The
// fields of each such row, and each constant that one of them reaches, are then translated
// once. Of each chunk, the package keeps a few bytes for each constant.
package jfrtranslator

import (
	"errors"
	"io"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// Unmarshaler turns recordings into OTLP profiles: one ResourceProfiles with, for each chunk, one ScopeProfiles for
// each kind of samples that it has. Its scope has the attributes otelcol_profiles.type and
// pprof.scope.sample_type_order. Each sample type is a Profile with the time and duration of the chunk and the
// attribute otelcol_profiles.temporality. A repeated chunk is left out: a JVM that ends after jcmd JFR.dump writes
// its chunks into the same file twice. The zero value is ready for use; it is safe for concurrent use.
//
// Samples of equal stack, attributes and link are summed. Attributes are those of the thread (thread.name, thread.id,
// otelcol_profiles.thread.state), of the context in Datadog's events, and labels. Events in which a thread waits have
// the attributes of package timing; if one waits during another one of its thread, that time counts once. The caller
// sets profile_id and the attributes of the resource.
type Unmarshaler struct {
	// ChunkSize is the limit of the size of a chunk, in bytes. Default: 64 MiB, at most 2 GiB.
	ChunkSize int
	// Timestamps keeps the time of each event instead of summing equal samples: of one with a duration its end, of
	// which the whole duration is the value, wherever it started. Objects that are alive have no time of their own
	// and are summed.
	Timestamps bool
	// NormalizeClassNames gives classes that JVMs and libraries make, such as Cart$$Lambda$14/0x0000000800066840, one
	// name in all processes: Cart$$Lambda. The names of the recording stay the system names of functions.
	NormalizeClassNames bool
	// SampleRate is the number of samples a second of CPU time, or of time on the clock,
	// for recordings that do not say so. If it is 0, their samples are counted only.
	SampleRate float64
	// Labels are the labels of contexts that Pyroscope's agent sends beside a recording:
	// a LabelsSnapshot, in protobuf.
	Labels []byte
}

// IsRecording reports whether data starts as a recording does.
func IsRecording(data []byte) bool { return jfr.IsRecording(data) }

var _ pprofile.Unmarshaler = (*Unmarshaler)(nil)

// Report counts omissions and repairs of a translation, and measures its result.
type Report struct {
	// OtherEvents are events that are not samples.
	OtherEvents int
	// InvalidStrings had bytes that are not UTF-8, each of which became \xff.
	InvalidStrings int
	// NegativeValues are durations, sizes and weights below zero, which became 0.
	NegativeValues int
	// OutsideTimes are timestamps outside the time of their chunk, which were moved to its start or end.
	OutsideTimes int
	// Bytes is about the memory that the result takes, rather more than less.
	Bytes int
}

// maxPooled is how much memory, in bytes, a decoder may keep for the next recording.
const maxPooled = 4 << 20

const (
	defaultChunkSize = 64 << 20
	maxChunkSize     = 1<<31 - 1
	defaultMemory    = 1 << 30 // bytes; it stops small chunks made of tiny events
)

// LimitError says that a recording is over a limit.
type LimitError = wire.LimitError

var decoders = sync.Pool{New: func() any { return newDecoder() }}

// UnmarshalProfiles translates buf, a recording. The result holds no reference to buf. The
// error is or wraps a *LimitError if buf exceeds a limit; any other names the chunk, the byte of
// it and the event that are malformed.
func (u *Unmarshaler) UnmarshalProfiles(buf []byte) (pprofile.Profiles, error) {
	pd, _, err := u.UnmarshalWithin(buf, defaultMemory, nil)
	return pd, err
}

// UnmarshalWithin is UnmarshalProfiles with a Report. The translation may take so many bytes of memory, besides those
// of buf. Before it takes more, it calls more with how many it needs; an error of that ends the translation, as does
// a *LimitError if more is nil.
func (u *Unmarshaler) UnmarshalWithin(
	buf []byte, memory int64, more func(needed int64) (allowed int64, err error),
) (pprofile.Profiles, Report, error) {
	d := decoders.Get().(*decoder)
	d.start(u)
	d.Begin(memory, more, false)
	d.Open(buf, nil, int64(len(buf)))
	pd, err := d.translate(false)
	report := d.report
	d.release() // not after a panic, which may leave it in any state
	if errors.Is(err, io.EOF) {
		err = errors.New("jfr: the recording is empty")
	}
	if err != nil {
		return pprofile.Profiles{}, Report{}, err
	}
	return pd, report, nil
}

// Reader translates a recording in a file chunk by chunk, so that it takes the memory of one
// chunk at a time. It is not safe for concurrent use.
type Reader struct{ d *decoder }

// NewReader returns a Reader of a recording of the given size, which has no labels.
func (u *Unmarshaler) NewReader(from io.ReaderAt, size int64) *Reader {
	d := newDecoder()
	d.start(u)
	d.Open(nil, from, size)
	return &Reader{d: d}
}

// Next is UnmarshalWithin for the next chunk, which may have no samples. It returns io.EOF after
// the last one. After an error, it goes on with the following chunk, if the header says where that is.
func (r *Reader) Next(memory int64, more func(needed int64) (allowed int64, err error)) (pprofile.Profiles, Report, error) {
	r.d.Begin(memory, more, true)
	r.d.Count(r.d.tables.Retained())
	r.d.report = Report{}
	pd, err := r.d.translate(true)
	if err != nil {
		return pprofile.Profiles{}, Report{}, err
	}
	return pd, r.d.report, nil
}

// Back makes Next translate the last chunk again, as if it had not before.
func (r *Reader) Back() {
	if r.d.Back(); r.d.noted {
		delete(r.d.translated, r.d.chunk())
	}
}

// Unfinished reports whether a chunk is unfinished: its program may still write it.
func (r *Reader) Unfinished() bool { return r.d.Unfinished() }

// Chunk returns the chunk that Next has translated last, and where it starts. It is valid until the next
// call of Next.
func (r *Reader) Chunk() (data []byte, offset int64) { return r.d.Data, r.d.Start }
