// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator

import (
	"strings"

	"golang.org/x/exp/trace"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
)

// interned numbers values from 0.
type interned[T comparable] struct {
	list   []T
	number map[T]int32
}

func (n *interned[T]) of(value T) int32 {
	number, known := n.number[value]
	if !known {
		if n.number == nil {
			n.number = map[T]int32{}
		}
		number = int32(len(n.list))
		n.list = append(n.list, value)
		n.number[value] = number
	}
	return number
}

// Numbers of reasons that are always there.
const (
	noReason int32 = iota
	reasonGC
	reasonPreempted
	reasonYielded
	reasonWoken
	reasonCreated
)

var firstReasons = [...]string{
	noReason: "", reasonGC: timing.GC, reasonPreempted: timing.Preempted, reasonYielded: timing.Yielded,
	reasonWoken: timing.Woken, reasonCreated: timing.Created,
}

// reasons numbers the reasons of states.
type reasons struct {
	interned[string]
	blocked map[evidence]int32
}

// evidence is what a trace says about why a goroutine waits. The stack tells apart what a word stands for.
type evidence struct {
	words string
	stack int32
}

func newReasons() reasons {
	r := reasons{blocked: map[evidence]int32{}}
	for _, reason := range firstReasons {
		r.interned.of(reason)
	}
	return r
}

// held is about how much memory r takes, in bytes.
func (r *reasons) held() int {
	const ofEvidence, ofReason = 96, 1 << 10
	return ofEvidence*len(r.blocked) + ofReason*len(r.list)
}

// of returns the number of the reason of a state that a goroutine gets into at a stack.
func (r *reasons) of(from, to trace.GoState, words string, number int32, s *stacks) int32 {
	switch to {
	case trace.GoRunnable:
		return runnableReason(from, words)
	case trace.GoWaiting:
		const mostBlocked = 64 << 10
		e := evidence{words, number}
		reason, known := r.blocked[e]
		if !known {
			if len(r.blocked) == mostBlocked {
				clear(r.blocked)
			}
			reason = r.interned.of(blockedReason(words, number, s))
			r.blocked[e] = reason
		}
		return reason
	}
	return noReason
}

func runnableReason(from trace.GoState, words string) int32 {
	switch {
	case words == "preempted":
		return reasonPreempted
	case words == "runtime.Gosched":
		return reasonYielded
	case from == trace.GoNotExist:
		return reasonCreated
	case from == trace.GoWaiting, from == trace.GoSyscall:
		return reasonWoken
	}
	return noReason
}

// blockedReasons are those of Go's words for what a goroutine waits for. Other words stay as they are.
var blockedReasons = map[string]string{
	"chan receive":                 timing.Channel,
	"chan send":                    timing.Channel,
	"select":                       timing.Select,
	"network":                      timing.Network,
	"sleep":                        timing.Sleep,
	"forever":                      timing.Forever,
	"preempted":                    timing.Preempted,
	"sync.(*Cond).Wait":            timing.Wait,
	"system goroutine wait":        timing.Idle,
	"GC background sweeper wait":   timing.Idle,
	"GC mark assist wait for work": timing.GC,
	"wait until GC ends":           timing.GC,
	"GC weak to strong wait":       timing.GC,
}

// reasonFunctions tell by the start of a function's name, called near the leaf of a stack, what a goroutine waits for. The
// first one that matches counts.
var reasonFunctions = []struct{ prefix, reason string }{
	{"sync.(*Mutex).", timing.Lock},
	{"sync.(*RWMutex).", timing.Lock},
	{"internal/sync.(*Mutex).", timing.Lock},
	{"internal/poll.(*fdMutex).", timing.Lock},
	{"internal/poll.runtime_pollWait", timing.Network},
	{"internal/poll.(*pollDesc).", timing.Network},
	{"time.Sleep", timing.Sleep},
	{"runtime.chanrecv", timing.Channel},
	{"runtime.chansend", timing.Channel},
	{"runtime.selectgo", timing.Select},
	{"runtime.block", timing.Forever},
	{"runtime.gcAssistAlloc", timing.GC},
	{"runtime.gcBgMarkWorker", timing.Idle},
	{"runtime.bgsweep", timing.Idle},
	{"runtime.bgscavenge", timing.Idle},
	{"runtime.forcegchelper", timing.Idle},
	{"runtime.runFinalizers", timing.Idle},
	{"runtime.runfinq", timing.Idle},
	{"runtime.runCleanups", timing.Idle},
	{"runtime.updateMaxProcsGoroutine", timing.Idle},
	{"sync.", timing.Wait},
}

// blockedReason returns why a goroutine waits. Go has one word, sync, for locks and signals, which the stack tells apart. Of
// a goroutine that waits since before the trace began, there is only the stack.
func blockedReason(words string, number int32, s *stacks) string {
	const sync = "sync" // the word of Go
	if reason, known := blockedReasons[words]; known {
		return reason
	}
	if words != "" && words != sync && words != "unspecified" {
		return words
	}
	const near = 8 // frames at the leaf
	frames := s.entries[number].frames
	for _, f := range frames[:min(len(frames), near)] {
		for _, known := range reasonFunctions {
			if strings.HasPrefix(s.frames[f].function, known.prefix) && (words != sync || known.reason == timing.Lock || known.reason == timing.Wait) {
				return known.reason
			}
		}
	}
	if words == sync {
		return timing.Wait
	}
	return ""
}
