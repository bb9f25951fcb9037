// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfrtranslator

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator/internal/jfr"
)

// interval is the time in which a thread waited, as an event has it.
type interval struct {
	thread     int32
	at         int32 // in decoder.timedValues
	start, end uint64
	left       uint64 // where the part starts that no other interval has taken
}

// Bytes of an interval, and of an index.
const (
	intervalSize = int(unsafe.Sizeof(interval{}))
	indexSize    = 4
)

// countOnce takes the time of each interval from the interval of the same thread that it is in, such as the wait for
// a lock while the thread reads from a socket. What remains of the outer one on both sides of the inner one are two
// parts, of which the last has its count.
func (d *decoder) countOnce() {
	var all []interval
	for i := range d.timedValues {
		t := &d.timedValues[i]
		if thread := d.rows[t.row].thread; thread != 0 && t.values[1] > 0 {
			length := min(uint64(t.values[1]), t.time)
			all = jfr.Append(&d.Memory, all, interval{thread: thread, at: int32(i), start: t.time - length, end: t.time})
		}
	}
	slices.SortFunc(all, func(a, b interval) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.at, b.at))
	})
	var open []int32 // indices in all, each in the one before
	for i := range all {
		in := &all[i]
		for n := len(open); n > 0 && d.Err == nil; n = len(open) {
			outer := &all[open[n-1]]
			if outer.thread == in.thread && in.start < outer.end && in.end <= outer.end {
				in.start = min(max(in.start, outer.left), in.end)
				d.part(outer, in.start)
				outer.left = max(outer.left, in.end)
				break
			}
			if outer.thread == in.thread {
				in.start = min(max(in.start, outer.end), in.end) // their times are rounded
			}
			d.close(outer)
			open = open[:n-1]
		}
		in.left = in.start
		open = jfr.Append(&d.Memory, open, int32(i))
	}
	for _, i := range open {
		d.close(&all[i])
	}
	d.Take(-intervalSize*cap(all) - indexSize*cap(open))
}

// part makes a timed value of the part of an interval before a time, if there is one.
func (d *decoder) part(of *interval, end uint64) {
	if end > of.left {
		t := timedValue{row: d.timedValues[of.at].row, time: end, values: [2]int64{0, int64(end - of.left)}}
		d.timedValues = jfr.Append(&d.Memory, d.timedValues, t)
	}
}

// close leaves the rest of an interval, at its end.
func (d *decoder) close(of *interval) {
	d.timedValues[of.at].values[1] = int64(of.end - of.left)
}

// sumIntervals adds the values of intervals to their samples, which have no timestamps.
func (d *decoder) sumIntervals() {
	for i := range d.timedValues {
		t := &d.timedValues[i]
		r := &d.rows[t.row]
		if err := add(&d.families[r.family].values[r.number], t.values[0], t.values[1]); err != nil {
			e := d.readEvent(r.at)
			d.fail(e, err)
			return
		}
	}
	d.timedValues = d.timedValues[:0]
}
