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
