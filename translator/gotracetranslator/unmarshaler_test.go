// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
)

const memory = 1 << 30

func translate(t testing.TB, data []byte) pprofile.Profiles {
	t.Helper()
	pd, report, err := (&gotracetranslator.Unmarshaler{}).UnmarshalWithin(data, memory, nil)
	require.NoError(t, err)
	require.NoError(t, report.Damage)
	profiletest.RequireConforms(t, pd)
	return pd
}

// slicesOf translates a trace slice by slice.
func slicesOf(t testing.TB, data []byte) (payloads []pprofile.Profiles) {
	t.Helper()
	r := (&gotracetranslator.Unmarshaler{}).NewReader(bytes.NewReader(data), int64(len(data)))
	for {
		pd, _, err := r.Next(memory, nil)
		if errors.Is(err, io.EOF) {
			return payloads
		}
		require.NoError(t, err)
		profiletest.RequireConforms(t, pd)
		payloads = append(payloads, pd)
	}
}

func TestStatesAreThoseOfTheTrace(t *testing.T) {
	data := record(t, runWorkers(t))
	want, got := truth(t, data), spansOf(t, translate(t, data))
	assert.Equal(t, joined(want), joined(got))
	assert.Equal(t, got, spansOf(t, slicesOf(t, data)...))

	lives, sums := map[int64]int64{}, map[int64]int64{}
	for _, s := range got {
		sums[s.goroutine] += s.length()
	}
	for i, s := range want {
		if i == 0 || want[i-1].goroutine != s.goroutine {
			lives[s.goroutine] -= s.start
		}
		if i == len(want)-1 || want[i+1].goroutine != s.goroutine {
			lives[s.goroutine] += s.end
		}
	}
	assert.Equal(t, lives, sums, "the sum over all states is the life of a goroutine within the trace")

	stacks := map[[2]int64]span{}
	for _, s := range want {
		stacks[[2]int64{s.goroutine, s.start}] = s
	}
	for _, s := range got {
		if known, found := stacks[[2]int64{s.goroutine, s.start}]; found && (s.state == timing.Blocked || s.state == timing.Syscall) {
			assert.Equal(t, known.stack, s.stack)
		}
	}
}

// of returns the time of a worker by state and reason, and its spans.
func of(spans []span, worker string) (sums map[string]time.Duration, all []span) {
	sums = map[string]time.Duration{}
	id := int64(-1)
	for _, s := range spans {
		if strings.Contains(s.stack, "."+worker+":") {
			id = s.goroutine
		}
	}
	for _, s := range spans {
		if s.goroutine == id {
			sums[strings.Trim(s.state+" "+s.reason, " ")] += time.Duration(s.length())
			all = append(all, s)
		}
	}
	return sums, all
}

func TestReasonsOfWaiting(t *testing.T) {
	spans := spansOf(t, translate(t, record(t, runWorkers(t))))
	for worker, want := range map[string]struct {
		state string
		least time.Duration
	}{
		"workHold": {"blocked sleep", stall}, "workLock": {"blocked lock", stall / 2},
		"workReceive": {"blocked channel", 1}, "workSend": {"blocked sleep", 10 * time.Millisecond},
		"workSelect": {"blocked select", 1}, "workRead": {"blocked network", 1}, "workCond": {"blocked wait", 1},
		"workFile": {"syscall", 1}, "workSleep": {"blocked sleep", 30 * time.Millisecond}, "workSpin": {"running", 1},
		"workYield": {"runnable yielded", 1},
	} {
		sums, _ := of(spans, worker)
		assert.GreaterOrEqual(t, sums[want.state], want.least, "%s: %v", worker, sums)
		assert.Positive(t, sums["running"], worker)
		assert.Positive(t, sums["runnable created"], worker)
	}
	// The stall: one interval of 300 ms, in which one goroutine waits for a lock that another holds asleep.
	_, waiting := of(spans, "workLock")
	stalled := slices.MaxFunc(waiting, func(a, b span) int { return int(a.length() - b.length()) })
	assert.Equal(t, timing.Lock, stalled.reason)
	assert.Contains(t, stalled.stack, "sync.(*Mutex).Lock:")
}

// callersOfBoth are the callers that two stacks have in common. The last one has no line if it differs.
func callersOfBoth(before, after string) string {
	if before == "" {
		before, after = after, ""
	}
	a := strings.Split(before, ";")
	slices.Reverse(a)
	if after == "" {
		return a[0]
	}
	b := strings.Split(after, ";")
	slices.Reverse(b)
	var both []string
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			if function, _, _ := strings.Cut(a[i], ":"); strings.HasPrefix(b[i], function+":") {
				both = append(both, function+":0")
			}
			break
		}
		both = append(both, a[i])
	}
	slices.Reverse(both)
	return strings.Join(both, ";")
}

func TestRunningHasTheCallersOfBothEnds(t *testing.T) {
	data := record(t, runWorkers(t))
	got := map[[2]int64]span{}
	for _, s := range spansOf(t, translate(t, data)) {
		got[[2]int64{s.goroutine, s.start}] = s
	}
	compared, last := 0, span{}
	spans := truth(t, data)
	for i, s := range spans {
		if s.goroutine != last.goroutine {
			last = span{goroutine: s.goroutine}
		}
		if known := got[[2]int64{s.goroutine, s.start}]; s.state == timing.Running && known.end == s.end { // not divided by a region
			after := ""
			if i+1 < len(spans) && spans[i+1].goroutine == s.goroutine {
				after = spans[i+1].stack
			}
			assert.Equal(t, callersOfBoth(last.stack, after), known.stack)
			compared++
		}
		if s.stack != "" {
			last = s
		}
	}
	assert.Greater(t, compared, 100)
}

// allocate makes a heap of pointers faster than the garbage collector alone marks it.
func allocate() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // which does not leave it enough workers
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	type node struct{ next, other *node }
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			var list *node
			for range 100_000 {
				list = &node{list, &node{}}
			}
			runtime.KeepAlive(list)
		})
	}
	running.Wait()
}

func TestWorkForTheGarbageCollector(t *testing.T) {
	data := record(t, allocate)
	want, got := assists(t, data), map[int64]int64{}
	workers := int64(0)
	for _, s := range spansOf(t, translate(t, data)) {
		switch {
		case s.state != timing.Running || s.reason == "":
		case strings.Contains(s.stack, "runtime.gcBgMarkWorker:") || strings.Contains(s.stack, "runtime.bgs"):
			workers += s.length()
		default:
			assert.Equal(t, timing.GC, s.reason)
			got[s.goroutine] += s.length()
		}
	}
	assert.NotEmpty(t, want)
	assert.Equal(t, want, got)
	assert.Positive(t, workers)
}

func TestTasksAndRegions(t *testing.T) {
	spans := spansOf(t, translate(t, record(t, runWorkers(t))))
	_, worker := of(spans, "workTask")
	sums := map[[2]string]time.Duration{}
	for _, s := range worker {
		if s.reason == timing.Sleep || s.reason == timing.Channel {
			sums[[2]string{s.task, s.region}] += time.Duration(s.length())
		}
	}
	assert.GreaterOrEqual(t, sums[[2]string{"checkout", "outer"}], 2*time.Millisecond, "%v", sums)
	assert.GreaterOrEqual(t, sums[[2]string{"checkout", "inner"}], time.Millisecond, "%v", sums)
	assert.GreaterOrEqual(t, sums[[2]string{"checkout", ""}], time.Millisecond, "%v", sums)
	_, child := of(spans, "workChild")
	for _, s := range child {
		assert.Equal(t, [2]string{"checkout", ""}, [2]string{s.task, s.region})
	}
	_, other := of(spans, "workSleep")
	for _, s := range other {
		assert.Empty(t, s.task+s.region)
	}
}

func TestTasksAreLinkedToSpans(t *testing.T) {
	spans := spansOf(t, translate(t, record(t, runWorkers(t))))
	for worker, want := range map[string]span{
		"workSpan": {link: traceID + "/" + spanID}, "workDatadog": {spanID: 0x0201}, "workTask": {},
	} {
		_, all := of(spans, worker)
		asleep := slices.IndexFunc(all, func(s span) bool { return s.reason == timing.Sleep })
		require.GreaterOrEqual(t, asleep, 0, worker)
		assert.Equal(t, want, span{link: all[asleep].link, spanID: all[asleep].spanID}, worker)
	}
}

// toolProfile is what go tool trace says about the workers: nanoseconds by stack.
func toolProfile(t *testing.T, file, kind string) (byStack map[string]int64, total int64) {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "go", "tool", "trace", "-pprof="+kind, file).Output()
	if err != nil {
		t.Skipf("go tool trace: %v", err)
	}
	p, err := profile.ParseData(output)
	require.NoError(t, err)
	byStack = map[string]int64{}
	for _, s := range p.Sample {
		var frames []string
		for _, l := range s.Location {
			frames = append(frames, fmt.Sprintf("%s:%d", l.Line[0].Function.Name, l.Line[0].Line))
		}
		stack := strings.Join(frames, ";")
		if isWorker(stack) {
			byStack[stack] += s.Value[1]
		}
		total += s.Value[1]
	}
	return byStack, total
}

// isWorker reports whether a stack is of a goroutine that started and ended within the trace.
func isWorker(stack string) bool { return strings.Contains(stack, "gotracetranslator_test.work") }

func TestTimesAreThoseOfGoToolTrace(t *testing.T) {
	data := record(t, runWorkers(t))
	file := profiletest.WriteFile(t, "trace", data)
	spans := spansOf(t, translate(t, data))
	for kind, reasons := range map[string][]string{
		"net": {timing.Network}, "sync": {timing.Lock, timing.Wait, timing.Channel, timing.Select}, "syscall": nil,
	} {
		state := timing.Blocked
		if kind == "syscall" {
			state = timing.Syscall
		}
		want, _ := toolProfile(t, file, kind)
		got := map[string]int64{}
		for _, s := range spans {
			if s.state == state && isWorker(s.stack) && (reasons == nil || slices.Contains(reasons, s.reason)) {
				got[s.stack] += s.length()
			}
		}
		assert.NotEmpty(t, want, kind)
		assert.Equal(t, want, got, kind)
	}
	// The tool attributes the time until a goroutine runs to the stack of the one that woke it, so that only the sums can
	// be compared. It leaves out the time before a goroutine first runs, and what has not ended when the trace does.
	_, want := toolProfile(t, file, "sched")
	end := spans[0].end
	for _, s := range spans {
		end = max(end, s.end)
	}
	got, hasRun := int64(0), map[int64]bool{}
	for _, s := range spans {
		hasRun[s.goroutine] = hasRun[s.goroutine] || s.state == timing.Running
		if s.state == timing.Runnable && hasRun[s.goroutine] && s.end < end {
			got += s.length()
		}
	}
	assert.Equal(t, want, got, "sched")
}
