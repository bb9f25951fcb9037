// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime/trace"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
)

// recordGenerations is record of a program with a trace of three generations: a flight recorder that is written ends one.
func recordGenerations(t testing.TB) []byte {
	t.Helper()
	recorder := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	return record(t, func() {
		require.NoError(t, recorder.Start())
		for range 2 {
			exchange(100)
			_, err := recorder.WriteTo(io.Discard)
			require.NoError(t, err)
		}
		recorder.Stop()
		exchange(100)
	})
}

// exchange sends messages between two goroutines.
func exchange(messages int) {
	values, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		for range values {
		}
	}()
	for i := range messages {
		values <- i
	}
	close(values)
	<-done
}

func TestDamagedTracesKeepWhatPrecedes_J6(t *testing.T) {
	data := recordGenerations(t)
	whole := joined(spansOf(t, translate(t, data)))
	kept := 0
	for size := len("go 1.26 trace") + 3; size < len(data); size += 307 {
		pd, report, err := (&gotracetranslator.Unmarshaler{}).UnmarshalWithin(data[:size], memory, nil)
		r := (&gotracetranslator.Unmarshaler{}).NewReader(bytes.NewReader(data[:size]), int64(size))
		slice, _, sliceErr := r.Next(memory, nil)
		if err != nil {
			assert.ErrorContains(t, err, "execution trace: ")
			assert.EqualError(t, sliceErr, err.Error())
			_, _, sliceErr = r.Next(memory, nil)
			assert.ErrorIs(t, sliceErr, io.EOF)
			continue
		}
		require.NoError(t, sliceErr)
		profiletest.RequireConforms(t, pd)
		got := spansOf(t, pd)
		assert.Equal(t, got, spansOf(t, slice))
		if report.Damage != nil { // it may end with a generation
			_, _, err = r.Next(memory, nil)
			assert.ErrorContains(t, err, report.Damage.Error())
		}
		_, _, err = r.Next(memory, nil)
		assert.ErrorIs(t, err, io.EOF)
		kept = max(kept, len(got))
		end := int64(0)
		for _, s := range got {
			end = max(end, s.end)
		}
		var want []span
		for _, s := range whole {
			if s.end = min(s.end, end); s.start < s.end {
				want = append(want, s)
			}
		}
		require.Equal(t, want, joined(got), "%d bytes of %d", size, len(data))
	}
	assert.Greater(t, kept, 300, "two of three generations")
}

func TestChangedBytesAreDamageOrAnotherTrace_J6(t *testing.T) {
	data := recordGenerations(t)
	random := profiletest.NewRand(profiletest.Seed(t))
	for range profiletest.Rounds(t, 300, 3000) {
		changed := slices.Clone(data)
		for range 1 + random.IntN(3) {
			changed[random.IntN(len(changed))] ^= 1 << random.IntN(8)
		}
		requireBounded(t, changed)
	}
}

// requireBounded checks that any input is an error, or yields Profiles that conform, within the memory that is allowed.
func requireBounded(t testing.TB, data []byte) {
	t.Helper()
	const allowed = 16 << 20
	pd, _, err := (&gotracetranslator.Unmarshaler{Start: time.Unix(1_700_000_000, 0)}).UnmarshalWithin(data, allowed, nil)
	if err == nil {
		profiletest.RequireConforms(t, pd)
		require.Positive(t, pd.SampleCount())
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(record(f, func() {}))
	f.Add(record(f, func() { exchange(3) }))
	f.Add(recordGenerations(f))
	f.Add(oldTrace().bytes())
	f.Add([]byte("go 1.21 trace\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { requireBounded(t, data) })
}

// A text that is repaired may become equal to another one.
func TestReasonsThatBecomeEqual(t *testing.T) {
	data := newWriter().
		batch(1000, []uint64{eventFrequency, 1000}).
		batch(1000, []uint64{eventStrings, eventString, 1, 1, 0xff}[:4], []uint64{0xff}, []uint64{eventString, 2, 4, '\\', 'x', 'f', 'f'}).
		batch(1000, []uint64{eventProcStatus, 0, 0, 1}, []uint64{eventGoStatus, 0, 7, 1, statusRunning}, []uint64{eventBlock, 1, 1, 0},
			[]uint64{eventUnblock, 1, 7, 1, 0}, []uint64{eventStart, 1, 7, 2}, []uint64{eventBlock, 1, 2, 0}).
		batch(4000, []uint64{eventGoStatus, 0, 8, 2, 4})
	pd, report, err := (&gotracetranslator.Unmarshaler{}).UnmarshalWithin(data.bytes(), memory, nil)
	require.NoError(t, err)
	require.NoError(t, report.Damage)
	assert.Positive(t, report.InvalidStrings)
	profiletest.RequireConforms(t, pd)
	equal := 0
	for _, s := range spansOf(t, pd) {
		if s.goroutine == 7 && s.reason == `\xff` {
			equal++
		}
	}
	assert.Equal(t, 2, equal)
}

func TestTracesOfOtherVersions(t *testing.T) {
	for data, want := range map[string]string{
		"":                                      "not an execution trace: the header is missing",
		"hello":                                 "not an execution trace: the header is missing",
		"go 1.26 trace\x00\x00":                 "not an execution trace: the header is missing",
		"go 1.11 trace\x00\x00\x00":             "the trace is of Go 1.11 or before Go 1.22: must be of Go 1.22 or later",
		"go 1.21 trace\x00\x00\x00\x01\x02\x03": "the trace is of Go 1.21 or before Go 1.22: must be of Go 1.22 or later",
		"go 1.99 trace\x00\x00\x00":             "unknown or unsupported trace version go 1.99",
		"go 1.26 trace\x00\x00\x00":             "it has no goroutines",
		"go 1.26 trace\x00\x00\x00garbage":      "expected batch event, got event 103",
	} {
		_, _, err := (&gotracetranslator.Unmarshaler{}).UnmarshalWithin([]byte(data), memory, nil)
		assert.EqualError(t, err, "execution trace: "+want, "%q", data)
	}
	assert.True(t, gotracetranslator.IsTrace([]byte("go 1.21 trace\x00\x00\x00")))
	assert.False(t, gotracetranslator.IsTrace([]byte("go 1.2x trace\x00\x00\x00")))
	assert.False(t, gotracetranslator.IsTrace([]byte("go 1.26 trace")))
}

// writer writes a trace of Go 1.22, which has no clock.
type writer struct{ data []byte }

func newWriter() *writer { return &writer{[]byte("go 1.22 trace\x00\x00\x00")} }

func (w *writer) bytes() []byte { return w.data }

// batch adds a batch of events of generation 1 and thread 1, each with its type first.
func (w *writer) batch(time uint64, events ...[]uint64) *writer {
	var content []byte
	for _, event := range events {
		content = append(content, byte(event[0]))
		for _, argument := range event[1:] {
			content = binary.AppendUvarint(content, argument)
		}
	}
	return w.raw(time, content)
}

func (w *writer) raw(time uint64, content []byte) *writer {
	w.data = append(w.data, eventBatch)
	for _, n := range []uint64{1, 1, time, uint64(len(content))} {
		w.data = binary.AppendUvarint(w.data, n)
	}
	w.data = append(w.data, content...)
	return w
}

// Types of events of Go's format.
const (
	eventBatch = 1 + iota
	eventStacks
	eventStack
	eventStrings
	eventString
	_
	_
	eventFrequency
	eventProcStatus = 13
	eventCreate     = 14
	eventStart      = 16
	eventBlock      = 20
	eventUnblock    = 21
	eventGoStatus   = 25
)

const statusRunning = 2 // of a goroutine

// oldTrace has a goroutine that runs for 2 s and then waits, and 1 s later another one.
func oldTrace() *writer {
	return newWriter().
		batch(1000, []uint64{eventFrequency, 1000}). // ticks of 1 ms
		batch(1000, []uint64{eventStrings, eventString, 1, 4}, []uint64{'w', 'a', 'i', 't'}).
		batch(1000, []uint64{eventProcStatus, 0, 0, 1}, []uint64{eventGoStatus, 0, 7, 1, statusRunning}, []uint64{eventBlock, 2000, 1, 0}).
		batch(4000, []uint64{eventGoStatus, 0, 8, 2, 4})
}

func TestTracesWithoutAClock(t *testing.T) {
	start := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, u := range map[string]gotracetranslator.Unmarshaler{
		"start": {Start: start}, "end": {End: start.Add(3 * time.Second)}, "both": {Start: start, End: start},
	} {
		pd, report, err := u.UnmarshalWithin(oldTrace().bytes(), memory, nil)
		require.NoError(t, err, name)
		require.NoError(t, report.Damage, name)
		spans := spansOf(t, pd)
		require.Len(t, spans, 3, name)
		at := start.UnixNano()
		assert.Equal(t, span{goroutine: 7, start: at, end: at + 2e9, state: timing.Running}, spans[0], name)
		assert.Equal(t, span{goroutine: 7, start: at + 2e9, end: at + 3e9, state: timing.Blocked, reason: "wait"}, span{
			goroutine: spans[1].goroutine, start: spans[1].start, end: spans[1].end / 1000 * 1000, state: spans[1].state, reason: spans[1].reason,
		}, name)
		assert.Equal(t, at, spans[2].start, "a goroutine lives since the trace began")
	}
	before := time.Now()
	pd, _, err := (&gotracetranslator.Unmarshaler{}).UnmarshalWithin(oldTrace().bytes(), memory, nil)
	require.NoError(t, err)
	assert.WithinDuration(t, before.Add(-3*time.Second), time.Unix(0, spansOf(t, pd)[0].start), time.Minute)
}

func TestMemoryIsBounded_J6(t *testing.T) {
	var manyGoroutines [][]uint64
	for i := range uint64(20_000) {
		manyGoroutines = append(manyGoroutines, []uint64{eventCreate, 1, 10 + i, 0, 0})
	}
	stacks, goroutines := newWriter(), newWriter()
	for first := range uint64(100) {
		batch := [][]uint64{{eventStacks}}
		for i := range uint64(5_000) {
			n := 5_000*first + i
			batch = append(batch, []uint64{eventStack, n + 1, 1, n, 1, 1, 1})
		}
		stacks.batch(1, batch...)
	}
	goroutines.batch(1, []uint64{eventFrequency, 1e9}).batch(1, []uint64{eventProcStatus, 0, 0, 1}, []uint64{eventGoStatus, 0, 7, 1, statusRunning})
	for range 100 {
		goroutines.batch(1, manyGoroutines[:8_000]...)
		for i := range manyGoroutines {
			manyGoroutines[i][2] += 20_000
		}
	}
	for name, data := range map[string][]byte{"stacks": stacks.bytes(), "goroutines": goroutines.bytes()} {
		const allowed = 8 << 20
		var err error
		allocated := profiletest.AllocatedBy(func() { _, _, err = (&gotracetranslator.Unmarshaler{}).UnmarshalWithin(data, allowed, nil) })
		_, isLimit := errors.AsType[*gotracetranslator.LimitError](err)
		assert.True(t, isLimit, "%s: %v", name, err)
		assert.Less(t, allocated, uint64(4*allowed), name)

		asked := int64(0)
		errFull := errors.New("full")
		r := (&gotracetranslator.Unmarshaler{}).NewReader(bytes.NewReader(data), int64(len(data)))
		_, _, err = r.Next(1<<20, func(needed int64) (int64, error) { asked = needed; return 0, errFull })
		assert.ErrorIs(t, err, errFull, name)
		assert.Greater(t, asked, int64(1<<20), name)
		_, _, err = r.Next(1<<20, nil)
		assert.ErrorIs(t, err, io.EOF, name)
	}
}

func TestSlicesFollowEachOther(t *testing.T) {
	release, waiting := make(chan struct{}), 200
	for range waiting { // they are named late in the first generation
		go func() { <-release }()
	}
	defer close(release)
	data := record(t, func() { exchange(30_000) })
	payloads := slicesOf(t, data)
	assert.GreaterOrEqual(t, len(payloads), 2)
	got := spansOf(t, payloads...)
	assert.Equal(t, joined(truth(t, data)), joined(got))
	assert.Equal(t, got, spansOf(t, translate(t, data)))
	for i := 1; i < len(payloads); i++ {
		before := payloads[i-1].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		p := payloads[i].ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		assert.Equal(t, uint64(before.Time())+before.DurationNano(), uint64(p.Time()))
	}

	// After an error of memory, the slices that were returned before are not returned again.
	r := (&gotracetranslator.Unmarshaler{}).NewReader(bytes.NewReader(data), int64(len(data)))
	hashes := map[string]bool{}
	for i := range payloads {
		_, _, err := r.Next(1, func(int64) (int64, error) { return 0, io.ErrShortBuffer })
		assert.ErrorIs(t, err, io.ErrShortBuffer)
		r.Back()
		pd, report, err := r.Next(memory, nil)
		require.NoError(t, err)
		assert.Equal(t, spansOf(t, payloads[i]), spansOf(t, pd))
		assert.Greater(t, report.Bytes, 16*len(spansOf(t, pd)))
		hashes[string(r.Hash())] = true
	}
	_, _, err := r.Next(memory, nil)
	assert.ErrorIs(t, err, io.EOF)
	assert.Len(t, hashes, len(payloads), "each slice has a hash of its own")
}
