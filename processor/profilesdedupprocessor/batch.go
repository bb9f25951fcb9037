// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"maps"
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// batch is a window with those who wait for its outcome. What may change while it
// fills is guarded by the processor's mutex; once full it is the sender's.
type batch struct {
	*window
	size       int // bytes retained, when it was last measured
	idsSize    int // of the ids of all partitions, in bytes
	sizes      dictionary.Sizes
	partitions map[string]*partition
}

// partition is what of a batch is passed on as one payload.
type partition struct {
	key string
	// ids are what is in it, for when its outcome is known.
	ids []profileKey
	// acknowledged is, with on_receive, when the last of them was, by repeats.
	acknowledged time.Duration
	waiters      int // callers who wait for the outcome
	done         chan struct{}
	// What is in it, and what becomes of its window; set when that is passed on.
	counts  counts
	outcome *outcome
	err     error // the outcome, once done is closed
}

func newBatch(settings mergeSettings) *batch {
	return &batch{window: newWindow(settings), partitions: map[string]*partition{}}
}

// partition returns the one of this key, which is made if there is none.
func (b *batch) partition(key string) *partition {
	part := b.partitions[key]
	if part == nil {
		part = newPartition(key)
		b.partitions[key] = part
	}
	return part
}

// addID notes what is in a partition of b.
func (b *batch) addID(part *partition, id profileKey) {
	b.idsSize -= len(id) * cap(part.ids)
	part.ids = append(part.ids, id)
	b.idsSize += len(id) * cap(part.ids)
}

func newPartition(key string) *partition {
	return &partition{key: key, done: make(chan struct{})}
}

// ordered returns the partitions in the order they are passed on.
func (b *batch) ordered() []*partition {
	var all []*partition
	for _, key := range slices.Sorted(maps.Keys(b.partitions)) {
		all = append(all, b.partitions[key])
	}
	return all
}
