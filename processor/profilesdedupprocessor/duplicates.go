// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// duplicates recognizes Profiles that were acknowledged within a time to live, and those
// whose outcome is pending. The processor's mutex guards it.
type duplicates struct {
	ttl   time.Duration // 0 to recognize none
	max   int           // acknowledged keys; the oldest of more are evicted
	start time.Time     // times are counted from here, monotonically

	acknowledged map[merge.Key]time.Duration // since start; all times differ
	last         time.Duration               // the latest of acknowledged ever
	// order has the acknowledged keys from head on, oldest first. It may also have keys that
	// were removed.
	order []acknowledgedKey
	head  int
	peak  int // of len(acknowledged) since it was empty: a map does not shrink

	pending map[merge.Key]*partition
}

type acknowledgedKey struct {
	key merge.Key
	at  time.Duration
}

// Estimates of the bytes that an acknowledged key takes, with its place in order, a removed
// key in order, and a pending key.
const (
	acknowledgedSize = 96
	removedSize      = 24
	pendingSize      = 64
)

// newDuplicates bounds the memory for acknowledged keys to about limit bytes.
func newDuplicates(ttl time.Duration, limit int) *duplicates {
	return &duplicates{
		ttl: ttl, max: max(1, limit/acknowledgedSize), start: time.Now(),
		acknowledged: map[merge.Key]time.Duration{}, pending: map[merge.Key]*partition{},
	}
}

// skip makes p skip its duplicates, and adds the partitions of those that are pending to waits.
// It returns whether p has other Profiles. Profiles of one payload are no duplicates of each
// other.
func (d *duplicates) skip(p *merge.Payload, waits *outcomes) (others bool) {
	d.evict()
	for i := range p.Profiles {
		profile := &p.Profiles[i]
		if profile.Skip {
			continue
		}
		if profile.Key != (merge.Key{}) {
			if part := d.pending[profile.Key]; part != nil {
				profile.Skip = true
				waits.add(part)
			} else {
				_, profile.Skip = d.acknowledged[profile.Key]
			}
		}
		others = others || !profile.Skip
	}
	return others
}

// acknowledge adds keys that were pending or are new, and returns the time of the last one,
// which is later than that of any before.
func (d *duplicates) acknowledge(keys []merge.Key) time.Duration {
	now := time.Since(d.start)
	for _, key := range keys {
		delete(d.pending, key)
		if _, ok := d.acknowledged[key]; !ok { // one payload may have it twice
			d.last = max(now, d.last+1)
			d.acknowledged[key] = d.last
			d.order = append(d.order, acknowledgedKey{key, d.last})
		}
	}
	d.peak = max(d.peak, len(d.acknowledged))
	d.evict()
	return d.last
}

// remove removes the keys of part, but not those that were acknowledged again later, with
// another partition.
func (d *duplicates) remove(part *partition) {
	for _, key := range part.keys {
		if d.pending[key] == part {
			delete(d.pending, key)
		}
		if d.acknowledged[key] <= part.acknowledged {
			delete(d.acknowledged, key)
		}
	}
	d.compact()
}

// evict removes the keys that are older than the time to live, and the oldest of too many.
func (d *duplicates) evict() {
	now := time.Since(d.start)
	for ; d.head < len(d.order); d.head++ {
		first := d.order[d.head]
		if at, ok := d.acknowledged[first.key]; !ok || at != first.at {
			continue // removed before
		}
		if now-first.at < d.ttl && len(d.acknowledged) <= d.max {
			break
		}
		delete(d.acknowledged, first.key)
	}
	d.compact()
	if len(d.acknowledged) == 0 && d.peak > 0 {
		d.acknowledged, d.order, d.head, d.peak = map[merge.Key]time.Duration{}, nil, 0, 0
	}
}

// compact bounds the removed keys in order.
func (d *duplicates) compact() {
	if len(d.order) <= len(d.acknowledged)*3/2+64 {
		return
	}
	kept := d.order[:0]
	for _, a := range d.order[d.head:] {
		if at, ok := d.acknowledged[a.key]; ok && at == a.at {
			kept = append(kept, a)
		}
	}
	d.order, d.head = kept, 0
}

// size returns an estimate of the bytes that d retains.
func (d *duplicates) size() int {
	return acknowledgedSize*d.peak + removedSize*max(0, len(d.order)-d.peak) + pendingSize*len(d.pending)
}
