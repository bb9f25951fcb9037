// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package perfscripttranslator turns the output of perf script into OTLP profiles.
//
// The text has a header line for each sample, and a line for each frame of its stack, leaf first:
//
//	checkout 1234/1240 [001] 12615.087741:    1001001 cpu-clock:
//		            1160 burn+0x27 (/usr/bin/checkout)
//		            119b main+0x18 (/usr/bin/checkout)
//
// Fields may be missing but for thread and time. Lines of source code (-F +srcline) and inlined functions are read.
//
// # Output
//
// The text is divided into parts of a bounded size. Each part has one time, and each event of it is a scope, with the
// event as profile type: a Profile that counts samples and, if the text has periods, one of what these are of. For
// the clocks of perf, that is cpu in nanoseconds. Both have a timestamp for each sample, and the attributes of its
// thread, process and CPU.
//
// A thread is off the CPU from the sched_switch at which it leaves one to the sched_switch at which it gets one
// again. To see both and all of them, perf record needs the options -a and -c 1. Scopes of the type off_cpu have
// these intervals with the stack at which they began, their starts as timestamps, and attributes of package timing: a
// thread that was woken (sched_waking, sched_wakeup) or preempted is runnable from then on. An interval that crosses
// the edge of a part is cut there. One that began before the text is not known, and one that goes on at its end lasts
// until then. Delays of sched_stat events count if no sched_switch is before them. These two kinds of events have no
// other Profile. The attribute otelcol_profiles.thread.state has the state as the kernel names it.
//
// # Time
//
// The clock of perf starts when the machine does. The header of perf script --header says what it shows at some time
// of day, if perf record had the option -k monotonic. Otherwise, the last sample was taken at [Unmarshaler.End].
package perfscripttranslator

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
)

// Unmarshaler turns the output of perf script into OTLP profiles. The caller sets profile_id and the attributes of the
// resource. The zero value is ready for use; it is safe for concurrent use.
type Unmarshaler struct {
	// End is when the last sample was taken, in nanoseconds since the epoch, if the text does not say. Without it,
	// times are those of perf's clock.
	End uint64
	// PartSize is about how many bytes of text a part has. Default: 4 MiB.
	PartSize int64
}

var _ pprofile.Unmarshaler = (*Unmarshaler)(nil)

// Report counts omissions and repairs of a translation, and measures its result.
type Report struct {
	// OtherLines are neither comments nor of a sample, or of a stack with too many lines.
	OtherLines int
	// Unpaired are events of the scheduler which do not fit the one before: perf has lost others.
	Unpaired int
	// InvalidStrings had bytes that are not UTF-8, each of which became \xff.
	InvalidStrings int
	// Bytes is about the memory that the result takes, rather more than less.
	Bytes int
}

// LimitError says that a text is over a limit.
type LimitError = wire.LimitError

const (
	defaultMemory   = 1 << 30 // bytes
	defaultPartSize = 4 << 20 // bytes; what a part becomes takes about as many
)

// UnmarshalProfiles translates buf as one part. The error is or wraps a *LimitError if buf exceeds a limit.
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
	whole := Unmarshaler{End: u.End, PartSize: math.MaxInt64}
	return whole.NewReader(bytes.NewReader(buf), int64(len(buf))).Next(memory, more)
}

// Reader translates a text part by part, so that it takes the memory of one part at a time. It is not safe for
// concurrent use.
type Reader struct {
	options Unmarshaler
	from    io.ReaderAt
	size    int64

	clock  *clock // nil before the first part
	before progress
	now    progress
	hash   hash.Hash // of the part
	ended  bool      // after an error
}

// progress is what a part needs to know of those before.
type progress struct {
	at      int64  // where it starts
	line    int    // lines before it
	start   uint64 // when it starts, by perf's clock
	samples int    // before it
	leaves  leaves
	delayed lastDelay // of the sample before
	paired  bool      // there was a sched_switch
}

// NewReader returns a Reader of a text of the given size.
func (u *Unmarshaler) NewReader(from io.ReaderAt, size int64) *Reader {
	r := &Reader{options: *u, from: from, size: size}
	if r.options.PartSize <= 0 {
		r.options.PartSize = defaultPartSize
	}
	r.now.leaves.threads = map[int64]*leave{}
	return r
}

// Next is UnmarshalWithin for the next part. It returns io.EOF after the last one, and after an error.
func (r *Reader) Next(
	memory int64, more func(needed int64) (allowed int64, err error),
) (pprofile.Profiles, Report, error) {
	none := pprofile.NewProfiles()
	if r.ended || r.now.at >= r.size && r.now.at > 0 {
		return none, Report{}, io.EOF
	}
	if r.clock == nil {
		c, err := r.findClock()
		if err != nil {
			return none, Report{}, err
		}
		r.clock = c
	}
	r.before = r.now
	r.before.leaves = r.now.leaves.clone()
	r.hash = sha256.New()
	d := newDecoder(&r.now, r.clock, meter{allowed: memory, more: more})
	err := d.readPart(r.from, r.size, r.options.PartSize, r.hash)
	if err == nil && r.now.samples == 0 && r.now.at >= r.size {
		err = errNoSamples
		if d.firstOther != nil {
			err = fmt.Errorf("%w: line %d is %q", errNoSamples, d.firstOtherLine, d.firstOther)
		}
	}
	if err != nil {
		r.ended = true
		return none, Report{}, fmt.Errorf("perf script: %w", err)
	}
	pd := d.write()
	return pd, d.report, nil
}

var errNoSamples = errors.New("the text has no sample, which starts with a line such as " +
	"`comm pid/tid [cpu] seconds.fraction: period event:`")

// Back makes Next translate the last part again, as if it had not before.
func (r *Reader) Back() {
	if r.before.leaves.threads != nil {
		r.now, r.ended = r.before, false
	}
}

// Hash identifies the part that Next has returned last, by its text.
func (r *Reader) Hash() []byte { return r.hash.Sum(nil) }
