// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package gotracetranslator turns execution traces of Go (runtime/trace, /debug/pprof/trace, flight recorders) of Go 1.22
// and later into OTLP profiles: how long each goroutine was in which state, with the stack and the reason.
//
// A trace consists of generations, of about a second each, which golang.org/x/exp/trace reads one after the other. From
// its events the package follows each goroutine, and makes an interval of each state. Intervals of one goroutine follow
// each other without gaps: their sum is its life within the trace.
//
// # Output
//
// A trace is divided into slices of a bounded number of intervals. Each slice is a Profile in a scope of its own, of the
// sample type goroutine_time in nanoseconds, with the time that it covers; an interval that crosses its edge is cut there.
// A sample has the starts of intervals as timestamps and their durations as values. Its attributes are those of package
// timing: goroutine, state, reason, that timestamps mark starts, and the innermost user task and region (package
// runtime/trace) in which the goroutine is. A goroutine takes over the task of the one that starts it. A task whose logs have the
// categories trace_id and span_id, with hex digits, is a link; the id of a span from Datadog's library is the attribute span id.
//
// The stack of a goroutine that waits, or is in a system call, is the one at which that began. While it runs, only
// the stacks at both ends are known: the sample has the callers which both have in common. Their last function has no
// line if it went on to another one.
//
// # Damage
//
// A trace that is cut or damaged yields what precedes the damage, and a Report says what is wrong. It is an
// error if nothing does. Memory is counted: batches of the current generation, goroutines, stacks and the result.
package gotracetranslator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// The sample type, which is also the profile type, and its unit.
const (
	SampleType = "goroutine_time"
	Unit       = "nanoseconds"
)

// Unmarshaler turns execution traces into OTLP profiles. The caller sets profile_id and the attributes of the resource. It
// is safe for concurrent use.
type Unmarshaler struct {
	// Start and End are about when the trace was taken, for traces before Go 1.25, which do not say. One of them is
	// enough; without both, the trace ends now.
	Start, End time.Time
}

// Report counts omissions and repairs of a translation, and measures its result.
type Report struct {
	// Damage is why the rest of the trace could not be read, nil if all of it was.
	Damage error
	// DroppedNames are tasks and regions that were ignored because a goroutine was in too many.
	DroppedNames int
	// InvalidStrings had bytes that are not UTF-8, each of which became \xff.
	InvalidStrings int
	// Bytes is about the memory that the result takes, rather more than less.
	Bytes int
}

// LimitError says that a trace is over a limit.
type LimitError = wire.LimitError

const defaultMemory = 1 << 30 // bytes

var _ pprofile.Unmarshaler = (*Unmarshaler)(nil)

const (
	headerStart = "go 1."
	headerEnd   = " trace\x00\x00\x00"
	headerSize  = len("go 1.22" + headerEnd)
)

// oldestVersion is the first one with generations. Go 1.25 says when a trace was taken.
const (
	oldestVersion = 22
	clockVersion  = 25
)

// IsTrace reports whether data starts as an execution trace does.
func IsTrace(data []byte) bool { return version(data) > 0 }

// version returns n of Go 1.n, which the header of a trace names, or 0.
func version(data []byte) int {
	text, found := bytes.CutPrefix(data[:min(len(data), headerSize)], []byte(headerStart))
	number, isHeader := bytes.CutSuffix(text, []byte(headerEnd))
	if n, err := strconv.Atoi(string(number)); found && isHeader && err == nil {
		return n
	}
	return 0
}

// checkVersion returns an error for a trace of a version that golang.org/x/exp/trace cannot read in parts, or not at all.
func checkVersion(header []byte) error {
	switch v := version(header); {
	case v == 0:
		return errors.New("not an execution trace: the header is missing")
	case v < oldestVersion:
		return fmt.Errorf("the trace is of Go 1.%d or before Go 1.22: must be of Go 1.22 or later", v)
	}
	return nil
}

// UnmarshalProfiles translates buf, a trace. The error is or wraps a *LimitError if buf exceeds a limit.
func (u *Unmarshaler) UnmarshalProfiles(buf []byte) (pprofile.Profiles, error) {
	pd, _, err := u.UnmarshalWithin(buf, defaultMemory, nil)
	return pd, err
}

// UnmarshalWithin is UnmarshalProfiles with a Report. The translation may take so many bytes of memory, besides those of
// buf. Before it takes more, it calls more with how many it needs; an error of that ends the translation, as does a
// *LimitError if more is nil.
func (u *Unmarshaler) UnmarshalWithin(
	buf []byte, memory int64, more func(needed int64) (allowed int64, err error),
) (pprofile.Profiles, Report, error) {
	r := u.NewReader(bytes.NewReader(buf), int64(len(buf)))
	r.memory = meter{allowed: memory, more: more}
	out := newOutput()
	err := r.nextSlice(out)
	for err == nil {
		err = r.nextSlice(out)
	}
	switch {
	case !errors.Is(err, io.EOF):
		return pprofile.Profiles{}, Report{}, err
	case r.trace.slices == 0:
		return pprofile.Profiles{}, Report{}, r.trace.failure()
	}
	pd, report, err := r.finish(out)
	report.Damage = r.trace.damage
	return pd, report, err
}

// Reader translates a trace slice by slice, so that it takes the memory of one generation and one slice at a time. It is
// not safe for concurrent use.
type Reader struct {
	options Unmarshaler
	from    io.ReaderAt
	size    int64

	memory   meter
	trace    *follower // nil before the first slice
	returned int       // slices that Next has returned
	ended    bool      // that Next has returned the last slice, or an error
}

// NewReader returns a Reader of a trace of the given size.
func (u *Unmarshaler) NewReader(from io.ReaderAt, size int64) *Reader {
	return &Reader{options: *u, from: from, size: size}
}

// Next is UnmarshalWithin for the next slice. It returns io.EOF after the last one, and after an error. That is damage of the
// trace, which may have no slices, or concerns memory or the file.
func (r *Reader) Next(memory int64, more func(needed int64) (allowed int64, err error)) (pprofile.Profiles, Report, error) {
	r.memory.allowed, r.memory.more = memory, more
	for !r.ended {
		out := newOutput()
		err := r.nextSlice(out)
		switch {
		case err == nil && r.trace.slices > r.returned:
			r.returned = r.trace.slices
			return r.finish(out)
		case err == nil: // it was returned before the trace was read again
		case errors.Is(err, io.EOF) && r.trace.damage == nil && r.returned > 0:
			r.ended = true
		case errors.Is(err, io.EOF):
			r.ended = true
			return pprofile.Profiles{}, Report{}, r.trace.failure()
		default:
			r.ended = true
			return pprofile.Profiles{}, Report{}, err
		}
	}
	return pprofile.Profiles{}, Report{}, io.EOF
}

// Back makes Next try again after an error, from the start of the trace to the slice that it has not returned yet.
func (r *Reader) Back() { r.trace, r.ended = nil, false }

// Hash identifies the slice that Next has returned last: by its number, and by all that was read of the trace until then.
func (r *Reader) Hash() []byte {
	return binary.BigEndian.AppendUint64(r.trace.batches.hash.Sum(nil), uint64(r.returned))
}

// nextSlice adds the next slice to out, or returns io.EOF after the last one.
func (r *Reader) nextSlice(out *output) (err error) {
	if r.trace == nil {
		if r.trace, err = r.open(); err != nil {
			return fmt.Errorf("execution trace: %w", err)
		}
	}
	return r.trace.nextSlice(out)
}

func (r *Reader) open() (*follower, error) {
	header := make([]byte, headerSize)
	n, err := r.from.ReadAt(header, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := checkVersion(header[:n]); err != nil {
		return nil, err
	}
	start, err := r.start(version(header))
	if err != nil {
		return nil, err
	}
	return newFollower(func() io.Reader { return io.NewSectionReader(r.from, 0, r.size) }, start, &r.memory)
}

// start is when the trace began, in case it does not say so.
func (r *Reader) start(version int) (time.Time, error) {
	if !r.options.Start.IsZero() {
		return r.options.Start, nil
	}
	end := r.options.End
	if end.IsZero() {
		end = time.Now()
	}
	if version >= clockVersion {
		return end, nil
	}
	length, err := lengthOf(io.NewSectionReader(r.from, int64(headerSize), r.size-int64(headerSize)))
	return end.Add(-length), err
}

// finish writes the dictionary of out, and reports on it.
func (r *Reader) finish(out *output) (pprofile.Profiles, Report, error) {
	if err := out.tables.Err(); err != nil {
		return pprofile.Profiles{}, Report{}, err
	}
	out.tables.Write(out.profiles.Dictionary())
	report := Report{DroppedNames: r.trace.droppedNames, InvalidStrings: out.tables.Repaired(), Bytes: out.size()}
	r.trace.droppedNames = 0
	return out.profiles, report, nil
}
