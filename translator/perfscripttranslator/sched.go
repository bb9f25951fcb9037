// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package perfscripttranslator

import (
	"bytes"
	"cmp"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/timing"
)

// Tracepoints of the scheduler that tell when a thread is off the CPU. Those of sched_stat have a delay in nanoseconds.
const (
	schedSwitch    = "sched:sched_switch"
	schedWaking    = "sched:sched_waking"
	schedWakeup    = "sched:sched_wakeup"
	schedWakeupNew = "sched:sched_wakeup_new"
	statWait       = "sched:sched_stat_wait"
	statSleep      = "sched:sched_stat_sleep"
	statIOWait     = "sched:sched_stat_iowait"
	statBlocked    = "sched:sched_stat_blocked" // also of a thread with sched_stat_iowait
)

// field returns the text between a key and until, of fields such as comm=a b pid=12. Without until, it ends at a space.
func field(text []byte, key, until string) ([]byte, bool) {
	start := bytes.Index(text, []byte(key))
	if start < 0 {
		return nil, false
	}
	text = text[start+len(key):]
	end := bytes.Index(text, []byte(cmp.Or(until, " ")))
	if end < 0 {
		return text, until == ""
	}
	return text[:end], true
}

// switched are the fields of sched_switch.
type switched struct {
	comm     []byte // of the thread that leaves the CPU
	tid      int64
	state    []byte
	nextTID  int64
	runnable bool // it would go on, but another one took the CPU
	ends     bool // it does not run again
}

// parseSwitch reads the fields as the kernel names them,
//
//	prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120
//
// or as a plugin of libtraceevent prints them: a:1 [120] S ==> b:2 [120].
func parseSwitch(text []byte) (s switched, ok bool) {
	before, after, ok := bytes.Cut(text, []byte(" ==> "))
	if !ok {
		return s, false
	}
	if prev, found := bytes.CutPrefix(before, []byte("prev_comm=")); found {
		comm, ok1 := field(prev, "", " prev_pid=")
		tid, ok2 := field(prev, " prev_pid=", "")
		state, ok3 := field(prev, " prev_state=", "")
		next, ok4 := field(after, " next_pid=", "")
		s.comm, s.state, ok = comm, state, ok1 && ok2 && ok3 && ok4
		if ok {
			s.tid, ok1 = parseInt(tid)
			s.nextTID, ok2 = parseInt(next)
			ok = ok1 && ok2
		}
	} else {
		var behind []byte
		if s.comm, s.tid, behind, ok = parsePlugin(before); ok {
			s.state = behind
			_, s.nextTID, _, ok = parsePlugin(after)
		}
	}
	if !ok || len(s.state) == 0 {
		return s, false
	}
	s.runnable, s.ends = s.state[0] == 'R', bytes.IndexByte([]byte("XZx"), s.state[0]) >= 0
	return s, true
}

// parsePlugin reads a:1 [120], and returns what is behind it.
func parsePlugin(text []byte) (comm []byte, tid int64, behind []byte, ok bool) {
	open := bytes.LastIndex(text, []byte(" ["))
	if open < 0 {
		return nil, 0, nil, false
	}
	colon := bytes.LastIndexByte(text[:open], ':')
	end := bytes.IndexByte(text[open:], ']')
	if colon < 0 || end < 0 {
		return nil, 0, nil, false
	}
	tid, ok = parseInt(text[colon+1 : open])
	return text[:colon], tid, bytes.TrimSpace(text[open+end+1:]), ok
}

// parseWakeup returns the thread that wakes up.
func parseWakeup(text []byte) (tid int64, ok bool) {
	if number, found := field(text, " pid=", ""); found {
		return parseInt(number)
	}
	_, tid, _, ok = parsePlugin(text)
	return tid, ok
}

// delayed are the fields of a sched_stat.
type delayed struct {
	comm  []byte
	tid   int64
	delay int64
}

// parseDelay reads comm=a pid=1 delay=12 [ns].
func parseDelay(text []byte) (d delayed, ok bool) {
	comm, ok1 := field(text, "comm=", " pid=")
	tid, ok2 := field(text, " pid=", "")
	delay, ok3 := field(text, " delay=", "")
	if !ok1 || !ok2 || !ok3 {
		return d, false
	}
	d.comm = comm
	d.tid, ok1 = parseInt(tid)
	d.delay, ok2 = parseInt(delay)
	return d, ok1 && ok2 && d.delay >= 0
}

// wait is why a thread is off the CPU.
type wait struct {
	state, reason string // of package timing; the reason may be empty
	kernel        string // as the kernel names the state; may be empty
}

// waitOf returns why a thread left the CPU.
func waitOf(kernelState []byte) wait {
	w := wait{state: timing.Blocked, kernel: string(kernelState)}
	if kernelState[0] == 'R' {
		w.state = timing.Runnable
		if bytes.IndexByte(kernelState, '+') > 0 {
			w.reason = timing.Preempted
		}
	}
	return w
}

// waitsOfStats are the waits that a sched_stat counts.
var waitsOfStats = map[string]wait{
	statWait:    {state: timing.Runnable},
	statSleep:   {state: timing.Blocked, kernel: "S"},
	statIOWait:  {state: timing.Blocked, reason: timing.File, kernel: "D"},
	statBlocked: {state: timing.Blocked, kernel: "D"},
}

// leave is a thread that has left the CPU.
type leave struct {
	since   uint64 // of perf's clock; moves to the edge of each part
	woken   uint64 // when it woke up, or 0
	comm    string
	pid     int64
	wait    wait
	counted bool   // in an earlier part
	stack   []byte // the lines of its frames
}

const leaveSize = 192 // bytes, with its entry in a map

// leaves has the threads that are off the CPU.
type leaves struct {
	threads map[int64]*leave
	bytes   int // of their texts
}

// put notes that a thread leaves the CPU.
func (l *leaves) put(tid int64, to leave) {
	l.remove(tid)
	l.threads[tid] = &to
	l.bytes += len(to.stack) + len(to.comm)
}

func (l *leaves) remove(tid int64) {
	if before := l.threads[tid]; before != nil {
		l.bytes -= len(before.stack) + len(before.comm)
		delete(l.threads, tid)
	}
}

func (l *leaves) size() int { return leaveSize*len(l.threads) + l.bytes }

// clone returns a copy. Stacks are shared: they do not change.
func (l *leaves) clone() leaves {
	c := leaves{make(map[int64]*leave, len(l.threads)), l.bytes}
	for tid, from := range l.threads {
		to := *from
		c.threads[tid] = &to
	}
	return c
}
