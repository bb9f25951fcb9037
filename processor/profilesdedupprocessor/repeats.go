// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import "time"

// repeats knows the Profiles that were acknowledged of late, and those whose outcome
// is pending. Its owner serializes calls.
type repeats struct {
	horizon time.Duration // 0 for knowing none
	most    int           // how many it knows; of more it forgets the earliest
	began   time.Time     // times are counted from here, monotonically

	known map[profileKey]time.Duration // since began; no two are equal
	last  time.Duration                // of what was acknowledged
	// order holds what is known from head on, earliest first; some of what was forgotten
	// may be there still.
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
	knownSize        = 96 // the next among it
	acknowledgedSize = 24
	pendingSize      = 64
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

// acknowledge makes keys known, and returns the time of the last: later than that of any
// before.
func (r *repeats) acknowledge(keys []profileKey) time.Duration {
	now := time.Since(r.began)
	for _, key := range keys {
		delete(r.pending, key)
		if _, ok := r.known[key]; !ok { // one payload may have it twice
			r.last = max(now, r.last+1)
			r.known[key] = r.last
			r.order = append(r.order, acknowledged{key, r.last})
		}
	}
	r.peak = max(r.peak, len(r.known))
	r.expire()
	return r.last
}

// forget makes what part has neither pending nor known, but for what was acknowledged
// again, with something else, after part was.
func (r *repeats) forget(part *partition) {
	for _, key := range part.ids {
		if r.pending[key] == part {
			delete(r.pending, key)
		}
		if r.known[key] <= part.acknowledged {
			delete(r.known, key)
		}
	}
	r.compact()
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
	r.compact()
	if len(r.known) == 0 && r.peak > 0 {
		r.known, r.order, r.head, r.peak = map[profileKey]time.Duration{}, nil, 0, 0
	}
}

// compact bounds order by what is known.
func (r *repeats) compact() {
	if len(r.order) <= len(r.known)*3/2+64 {
		return
	}
	kept := r.order[:0]
	for _, a := range r.order[r.head:] {
		if at, ok := r.known[a.key]; ok && at == a.at {
			kept = append(kept, a)
		}
	}
	r.order, r.head = kept, 0
}

// retained is about how much memory r holds on to, in bytes.
func (r *repeats) retained() int {
	return knownSize*r.peak + acknowledgedSize*max(0, len(r.order)-r.peak) + pendingSize*len(r.pending)
}
