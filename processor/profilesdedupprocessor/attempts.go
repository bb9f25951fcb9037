// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// attempts admits attempts to send a partition, and counts the bytes that memory_limit bounds, except duplicate IDs. The
// processor's mutex guards it.
//
// The open window, all closed ones together, and a payload may each take a third of what messages leave. Messages may take
// as much as that before nothing more is sent for the first time. So there is always memory to send again what waits.
type attempts struct {
	limit  int // of all bytes below
	places int // attempts that may run at once

	open     int // bytes of the open window
	closed   int // bytes of the closed windows with a partition that was not sent yet
	messages int // bytes of the partitions that are to be sent again
	waiting  int // number of these partitions
	payloads int // bytes of the payloads of the attempts that run

	running   int
	repeating int        // attempts that run and are not the first one of their partition
	repeated  bool       // the attempt that was admitted last is not the first one of its partition
	first     []*attempt // first attempts that wait, in the order of their requests
	again     []*attempt // other attempts that wait, in the order of their requests
	stopping  bool       // windows are closed and sent in any case
}

// attempt is the permission to make a payload and send it. Each request is followed by one call of end.
type attempt struct {
	size     int        // bytes of the payload, once it runs
	estimate func() int // these bytes, before
	again    bool
	admitted chan struct{} // closed when the attempt may run
	runs     bool
}

// largestWindow is the size in bytes from which any open window is closed early. As OTLP, a window
// takes less than half of it, so that it stays below the 64 MiB that receivers are configured for.
const largestWindow = 128 << 20

// maxWindow is the size in bytes from which the open window is closed early. Only a single payload may exceed it.
func (a *attempts) maxWindow() int { return min((a.limit-a.messages)/3, largestWindow) }

// hasRoom reports whether a partition may be sent for the first time: if it is not accepted, it becomes a message.
func (a *attempts) hasRoom() bool { return a.stopping || a.messages < a.maxWindow() }

// hasRoomFor reports whether the open window, of this size, may be closed.
func (a *attempts) hasRoomFor(size int) bool {
	return a.stopping || a.hasRoom() && (a.closed == 0 || a.closed+size <= a.maxWindow())
}

func (a *attempts) closeWindow(size int) {
	a.open = 0
	a.closed += size
}

// retained are all bytes.
func (a *attempts) retained() int { return a.open + a.closed + a.messages + a.payloads }

// request asks for an attempt with a payload of about estimate() bytes, which is called with the mutex held.
func (a *attempts) request(estimate func() int, again bool) *attempt {
	t := &attempt{estimate: estimate, again: again, admitted: make(chan struct{})}
	queue := a.queue(again)
	*queue = append(*queue, t)
	a.admit()
	return t
}

// resize states the bytes of the payload of an attempt that runs.
func (a *attempts) resize(t *attempt, size int) {
	a.payloads += size - t.size
	t.size = size
	a.admit()
}

// end ends an attempt, or its wait.
func (a *attempts) end(t *attempt) {
	defer a.admit()
	if !t.runs {
		queue := a.queue(t.again)
		*queue = slices.DeleteFunc(*queue, func(other *attempt) bool { return other == t })
		return
	}
	a.running--
	a.payloads -= t.size
	if t.again {
		a.repeating--
	}
}

func (a *attempts) queue(again bool) *[]*attempt {
	if again {
		return &a.again
	}
	return &a.first
}

// admit admits the attempts that have a place and memory. One attempt is admitted in any case, so that a payload that is
// larger than its share is sent alone. No attempt overtakes one that waits for memory: it would wait forever.
func (a *attempts) admit() {
	for a.running < a.places {
		queue := a.nextQueue()
		if queue == nil {
			return
		}
		t := (*queue)[0]
		size := t.estimate()
		if a.running > 0 && a.retained()+size > a.limit {
			return
		}
		t.size = size
		*queue = (*queue)[1:]
		a.running++
		a.payloads += t.size
		a.repeated = t.again
		if t.again {
			a.repeating++
		}
		t.runs = true
		close(t.admitted)
	}
}

// nextQueue returns the queue of the next attempt: first attempts, so that a backlog does not delay what is new, unless no
// other attempt runs.
func (a *attempts) nextQueue() *[]*attempt {
	first := len(a.first) > 0 && a.hasRoom()
	switch {
	case len(a.again) > 0 && (!first || a.repeating == 0 && !a.repeated):
		return &a.again
	case first:
		return &a.first
	}
	return nil
}

// memoryOf estimates the bytes that a payload takes, and its OTLP, which an exporter makes.
func memoryOf(pd pprofile.Profiles) int {
	d := pd.Dictionary()
	return 2*sizeOf(pd) + 160*pd.SampleCount() + 512*pd.ProfileCount() +
		80*d.MappingTable().Len() + 112*d.LocationTable().Len() + 40*d.FunctionTable().Len() +
		32*d.StackTable().Len() + 88*d.AttributeTable().Len() + 16*d.StringTable().Len() + 40*d.LinkTable().Len()
}
