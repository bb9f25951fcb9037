// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package timing names the attributes of samples whose timestamps say when a thread or goroutine did something, and for how
// long. They are attributes of a sample, so that samples of different meaning stay apart when Profiles are merged.
//
// Threads have the attributes thread.id and thread.name of the semantic conventions.
package timing

// StateAttribute is what the thread or goroutine does: [Running], [Runnable], [Blocked] or [Syscall].
const StateAttribute = "otelcol_profiles.state"

// States. A thread is on a CPU in Running alone, and off it in Runnable and Blocked.
const (
	Running  = "running"
	Runnable = "runnable" // could run, and waits for a CPU
	Blocked  = "blocked"  // waits for something else: see ReasonAttribute
	Syscall  = "syscall"  // in a system call, of which the source does not say whether it runs or waits
)

// ReasonAttribute is why a thread or goroutine is in its state. Without it, the reason is unknown, or the state says all. A
// source may use words of its own for what those below do not say.
const ReasonAttribute = "otelcol_profiles.reason"

// Reasons of Blocked.
const (
	Lock    = "lock"    // another one holds a mutex or monitor
	Wait    = "wait"    // until another one signals: a condition, a wait group, a parked thread
	Channel = "channel" // one channel
	Select  = "select"  // several channels
	Network = "network" // a socket
	File    = "file"    // a file or disk
	Sleep   = "sleep"
	Idle    = "idle"    // a thread of a runtime or pool without work
	Forever = "forever" // nothing can end it, such as select{} of Go
)

// Reasons of Runnable.
const (
	Preempted = "preempted" // another one took the CPU
	Yielded   = "yielded"   // it gave the CPU up
	Woken     = "woken"     // what it was blocked by has ended
	Created   = "created"   // it has not run yet
)

// GC is the garbage collector: as a reason of Blocked one waits for it, as a reason of Running one works for it.
const GC = "gc"

// TimestampMarksAttribute is what the timestamps of a sample mark: [MarksStart], [MarksEnd] or [MarksInstant]. Without it,
// they mark instants.
//
// With MarksStart and MarksEnd, each value of the sample is the duration of what starts or ends at the timestamp of the same
// index, in nanoseconds if that is the unit of the Profile: a sibling in its scope may count the same events. What crosses an edge of
// its Profile is cut there, or drawn up to there if the source has it as a whole: a JVM writes a wait once, when that ends.
const TimestampMarksAttribute = "otelcol_profiles.timestamp_marks"

// What timestamps mark.
const (
	MarksStart   = "start"
	MarksEnd     = "end"
	MarksInstant = "instant"
)

// GoroutineIDAttribute is the number of a goroutine, an integer. The semantic conventions have none for it.
const GoroutineIDAttribute = "otelcol_profiles.goroutine.id"

// TaskAttribute and RegionAttribute are the names of the innermost user task and region in which a goroutine is.
const (
	TaskAttribute   = "otelcol_profiles.task"
	RegionAttribute = "otelcol_profiles.region"
)
