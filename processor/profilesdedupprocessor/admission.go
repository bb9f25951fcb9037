// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// admission says when a payload may be made and sent, and counts the bytes that memory_limit bounds, except duplicate IDs.
// The processor's mutex guards it.
//
// The open window, all closed ones together, and a payload may each take a third of what messages leave. Messages may take
// as much as that before nothing more is sent for the first time. So there is always memory to send again what waits.
type admission struct {
	limit  int // of all bytes below
	places int // permits that are held at once

	open     int // bytes of the open window
	closed   int // bytes of the closed windows with a partition that was not sent yet
	messages int // bytes of the partitions that are to be sent again
	waiting  int // number of these partitions
	payloads int // bytes of the payloads of the permits that are held

	held      int
	repeating int       // held permits of partitions that are messages
	repeated  bool      // the permit that was granted last is of a message
	first     []*permit // of partitions that were not sent yet, in the order of their requests
	again     []*permit // of messages, in the order of their requests
	stopping  bool      // windows are closed and sent in any case
}

// permit allows its partition to make a payload and send it. Each request is followed by one call of end.
type permit struct {
	estimate func() int // bytes of the payload, until it is measured
	again    bool       // of a message
	granted  chan struct{}
	held     bool
	size     int // bytes of the payload while it is held
}

// largestWindow is the size in bytes from which any open window is closed early. As OTLP, a window
// takes less than half of it, so that it stays below the 64 MiB that receivers are configured for.
const largestWindow = 128 << 20

// maxWindow is the size in bytes from which the open window is closed early. Only a single payload may exceed it.
func (a *admission) maxWindow() int { return min((a.limit-a.messages)/3, largestWindow) }

// hasRoom reports whether a partition may be sent for the first time: if it is not accepted, it becomes a message.
func (a *admission) hasRoom() bool { return a.stopping || a.messages < a.maxWindow() }

// mayClose reports whether the open window, of this size, may be closed.
func (a *admission) mayClose(size int) bool {
	return a.stopping || a.hasRoom() && (a.closed == 0 || a.closed+size <= a.maxWindow())
}

// windowClosed counts the open window as a closed one.
func (a *admission) windowClosed(size int) {
	a.open = 0
	a.closed += size
}

// retained are all bytes.
func (a *admission) retained() int { return a.open + a.closed + a.messages + a.payloads }

// request asks for a permit for a payload of estimate() bytes, which is called with the mutex held.
func (a *admission) request(estimate func() int, again bool) *permit {
	t := &permit{estimate: estimate, again: again, granted: make(chan struct{})}
	queue := a.queue(again)
	*queue = append(*queue, t)
	a.grant()
	return t
}

// resize states the bytes of the payload of a held permit.
func (a *admission) resize(t *permit, size int) {
	a.payloads += size - t.size
	t.size = size
	a.grant()
}

// end returns a permit, or withdraws its request.
func (a *admission) end(t *permit) {
	defer a.grant()
	if !t.held {
		queue := a.queue(t.again)
		*queue = slices.DeleteFunc(*queue, func(other *permit) bool { return other == t })
		return
	}
	a.held--
	a.payloads -= t.size
	if t.again {
		a.repeating--
	}
}

func (a *admission) queue(again bool) *[]*permit {
	if again {
		return &a.again
	}
	return &a.first
}

// grant grants permits while there are places and memory. One permit is granted in any case, so that a payload that is
// larger than its share is sent alone. None overtakes a permit that waits for memory, which would wait forever.
func (a *admission) grant() {
	for a.held < a.places {
		queue := a.nextQueue()
		if queue == nil {
			return
		}
		t := (*queue)[0]
		size := t.estimate()
		if a.held > 0 && a.retained()+size > a.limit {
			return
		}
		*queue = (*queue)[1:]
		t.held, t.size = true, size
		a.held++
		a.payloads += size
		a.repeated = t.again
		if t.again {
			a.repeating++
		}
		close(t.granted)
	}
}

// nextQueue returns the queue of the next permit. What was not sent yet comes first, so that a backlog does not delay it.
// But one place is for the backlog, or every second permit if there is only one place.
func (a *admission) nextQueue() *[]*permit {
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
