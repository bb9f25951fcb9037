// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import "time"

// repeats knows the Profiles that were acknowledged of late, and those whose outcome
// is pending. Its owner serializes calls.
type repeats struct {
	horizon time.Duration // 0 for knowing none
	most    int           // how many it knows; of more it forgets the earliest
	began   time.Time     // times are counted from here, monotonically

	known map[profileKey]time.Duration // since began
	// order holds what is known from head on, earliest first; what was forgotten may
	// be there still.
	order []acknowledged
	head  int
	peak  int // of known since it was empty: a map does not shrink

	pending map[profileKey]*partition
}

type acknowledged struct {
	key profileKey
	at  time.Duration
}

// About what a known and a pending Profile take, in bytes.
const (
	knownSize   = 96
	pendingSize = 64
)

// newRepeats returns one that takes about limit bytes at most for what is known.
func newRepeats(horizon time.Duration, limit int) *repeats {
	return &repeats{
		horizon: horizon, most: max(1, limit/knownSize), began: time.Now(),
		known: map[profileKey]time.Duration{}, pending: map[profileKey]*partition{},
	}
}

// mark tells of each Profile whether it is a repeat, and returns the partitions whose
// outcome decides about those that are pending. Profiles of one payload are no repeats
// of each other.
func (r *repeats) mark(profiles []incomingProfile) (waits outcomes, marked int) {
	r.expire()
	for i := range profiles {
		p := &profiles[i]
		if p.repeat = p.done; p.done {
			marked++
			continue
		}
		if p.key == (profileKey{}) {
			continue
		}
		if _, p.repeat = r.known[p.key]; !p.repeat {
			var outcome *partition
			if outcome, p.repeat = r.pending[p.key]; p.repeat {
				waits.add(outcome)
			}
		}
		if p.repeat {
			marked++
		}
	}
	return waits, marked
}

// outcomes are partitions that somebody is to wait for, each once.
type outcomes struct {
	all   []*partition
	there map[*partition]bool
}

func (o *outcomes) add(p *partition) {
	if o.there[p] {
		return
	}
	if o.there == nil {
		o.there = map[*partition]bool{}
	}
	o.there[p] = true
	o.all = append(o.all, p)
}

// await makes the outcome of p decide about key.
func (r *repeats) await(key profileKey, p *partition) { r.pending[key] = p }

// acknowledge makes keys known.
func (r *repeats) acknowledge(keys []profileKey) {
	now := time.Since(r.began)
	for _, key := range keys {
		delete(r.pending, key)
		if _, ok := r.known[key]; !ok { // one payload may have it twice
			r.known[key] = now
			r.order = append(r.order, acknowledged{key, now})
		}
	}
	r.peak = max(r.peak, len(r.known))
	r.expire()
}

// forget makes keys neither known nor pending.
func (r *repeats) forget(keys []profileKey) {
	for _, key := range keys {
		delete(r.pending, key)
		delete(r.known, key)
	}
}

// expire forgets what is beyond the horizon, or too much.
func (r *repeats) expire() {
	now := time.Since(r.began)
	for ; r.head < len(r.order); r.head++ {
		first := r.order[r.head]
		if at, ok := r.known[first.key]; !ok || at != first.at {
			continue // forgotten before
		}
		if now-first.at < r.horizon && len(r.known) <= r.most {
			break
		}
		delete(r.known, first.key)
	}
	if r.head > len(r.order)/2 {
		r.order = append(r.order[:0], r.order[r.head:]...)
		r.head = 0
	}
	if len(r.known) == 0 && r.peak > 0 {
		r.known, r.order, r.head, r.peak = map[profileKey]time.Duration{}, nil, 0, 0
	}
}

// retained is about how much memory r holds on to, in bytes.
func (r *repeats) retained() int { return knownSize*r.peak + pendingSize*len(r.pending) }
