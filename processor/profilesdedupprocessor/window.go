// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// window is a merge.Window with the callers and the Profiles that depend on its outcome.
// The processor's mutex guards it while it is open; then it belongs to the goroutine that
// exports it.
type window struct {
	merged     *merge.Window // nil after its last partition has been sent
	size       int           // bytes retained, when last measured
	timer      *time.Timer   // fires when the time of the window ends
	overdue    reason        // if it is set, the window is closed as soon as there is room
	keysSize   int           // bytes of the keys of all partitions
	partitions map[string]*partition
	unsent     []*partition // after the window was closed, in the order of their keys
}

// partition is the part of a window that is sent as one payload: without split_by all of it.
type partition struct {
	key    string
	window *window
	counts merge.Counts // set when it is sent
	// keys are those of its Profiles. After a failure they are removed from seenProfiles.
	keys []merge.Key
	// acknowledgedAt is set with on_receive: the time of the last of keys in seenProfiles.
	acknowledgedAt time.Duration
	partial        bool // the next consumer has accepted a part; counts are those of the rest
	waiters        int  // callers that wait for done; guarded by the processor's mutex
	done           chan struct{}
	err            error // valid once done is closed
}

func newWindow(options *merge.Options) *window {
	return &window{merged: merge.NewWindow(options), partitions: map[string]*partition{}}
}

// partition returns the partition with this key, which it creates if there is none.
func (w *window) partition(key string) *partition {
	part := w.partitions[key]
	if part == nil {
		part = &partition{key: key, window: w, done: make(chan struct{})}
		w.partitions[key] = part
	}
	return part
}

func (w *window) addKey(part *partition, key merge.Key) {
	w.keysSize -= len(key) * cap(part.keys)
	part.keys = append(part.keys, key)
	w.keysSize += len(key) * cap(part.keys)
}

func (w *window) measure() { w.size = w.merged.Size() + w.keysSize }

// close ends the additions: the partitions are complete and can be sent.
func (w *window) close() {
	w.unsent = slices.SortedFunc(maps.Values(w.partitions), func(a, b *partition) int { return cmp.Compare(a.key, b.key) })
	for _, part := range w.unsent {
		part.counts = w.merged.PartitionCounts(part.key)
	}
}

// partitionSet is a set of partitions, such as those that a caller waits for.
type partitionSet map[*partition]bool

func (s *partitionSet) add(part *partition) {
	if *s == nil {
		*s = partitionSet{}
	}
	(*s)[part] = true
}

// maxSlots is the number of slots with which the open window is closed early.
const maxSlots = 64

// maxRetained is how many bytes of a window a byte of a payload takes, if the window has nothing of
// it yet: 2.5 in measurements with distinct samples.
const maxRetained = 3

// largestWindow is the size in bytes from which any open window is closed early. As OTLP, a window
// takes less than half of it, so that it stays below the 64 MiB that receivers are configured for.
const largestWindow = 128 << 20

// maxWindow is the size in bytes from which the open window is closed early: a third of the bytes that
// p.seen and the retry queue leave of memory_limit, and at most largestWindow. Only a single
// payload may exceed it. The other two thirds are for the window being exported and the payload
// made of it. The caller holds mu.
func (p *dedupProcessor) maxWindow() int {
	return min(int(p.cfg.MemoryLimit)-p.seen.size()-p.retrySize, 3*largestWindow) / 3
}

// hasRoom reports whether a payload may be sent: if it is not accepted, the retry queue needs
// room for it. The caller holds mu.
func (p *dedupProcessor) hasRoom() bool { return p.retrySize == 0 || p.retrySize < p.maxWindow() }

// expire closes w, whose time has ended, unless it is closed already.
func (p *dedupProcessor) expire(w *window) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == w {
		w.overdue = reasonWindow
		p.closeOverdue()
	}
}

// closeOverdue closes the open window if it is overdue and there is room now. The caller holds mu.
func (p *dedupProcessor) closeOverdue() {
	if p.open != nil && p.open.overdue != "" {
		p.seen.evict() // expired IDs may take its room
		p.closeIfRoom(p.open.overdue)
	}
}

// closeIfRoom closes the open window if the export goroutine would start on it now. The
// caller holds mu.
func (p *dedupProcessor) closeIfRoom(why reason) bool {
	if len(p.pending) > 0 || !p.hasRoom() {
		return false
	}
	p.closeWindow(why)
	return true
}

// closeWindow hands the open window to the export goroutine. The caller holds mu.
func (p *dedupProcessor) closeWindow(why reason) {
	if p.open == nil {
		return
	}
	p.open.timer.Stop()
	p.telemetry.flushed(why)
	p.open.close()
	p.pending = append(p.pending, p.open)
	p.open = nil
	p.exporter.wakeUp()
}

// dropOpen drops the open window, which a panic may have left half-changed. The caller holds mu.
func (p *dedupProcessor) dropOpen() {
	w := p.open
	p.open = nil
	w.timer.Stop()
	w.close()
	for _, part := range w.unsent {
		p.completeLocked(part, errWindowPanicked)
		p.reportDropped(part, reasonPanic, errWindowPanicked)
	}
}

// nextPartition takes the first partition of the pending windows, if it is to be sent now: the retry
// queue must have room in case the next consumer does not accept it.
func (p *dedupProcessor) nextPartition() (part *partition, stopping bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.updateRetainedMetric()
	for len(p.pending) > 0 && len(p.pending[0].unsent) == 0 {
		p.pending[0].merged, p.pending[0].partitions = nil, nil // retries need neither
		p.pending[0] = nil
		p.pending = p.pending[1:]
	}
	p.closeOverdue()
	if p.room != nil && (len(p.pending) == 0 || p.stopping) {
		close(p.room)
		p.room = nil
	}
	if len(p.pending) > 0 && (p.stopping || p.hasRoom()) {
		w := p.pending[0]
		part, w.unsent = w.unsent[0], w.unsent[1:]
	}
	return part, p.stopping
}

// updateRetainedMetric updates the metric of retained bytes. The caller holds mu.
func (p *dedupProcessor) updateRetainedMetric() {
	size := p.seen.size() + p.retrySize
	if p.open != nil {
		size += p.open.size
	}
	for _, w := range p.pending {
		size += w.size
	}
	p.telemetry.retained.Store(int64(size))
}
