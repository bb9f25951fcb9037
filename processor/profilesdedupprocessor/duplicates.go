// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
)

// seenProfiles holds the keys of Profiles that were acknowledged within a time to live, and of
// those whose outcome is pending. Profiles with these keys are duplicates. Acknowledged keys
// expire in the order of their acknowledgement. The processor's mutex guards it.
type seenProfiles struct {
	ttl   time.Duration // 0: no key is kept
	max   int           // of acknowledged keys; more evict the oldest
	start time.Time     // times are counted from here, monotonically

	acknowledged map[merge.Key]time.Duration // since start; all times differ, and none is 0
	last         time.Duration               // the latest of acknowledged ever
	// order has the acknowledged keys, oldest first, and removed ones until compact.
	order []acknowledgedKey
	peak  int // of len(acknowledged) since it was empty: a map does not shrink

	pending map[merge.Key]*partition
}

type acknowledgedKey struct {
	key merge.Key
	at  time.Duration
}

// Estimates of the bytes that these take: an acknowledged key with its place in order, a removed
// key in order, and a pending key.
const (
	acknowledgedSize = 96
	removedSize      = 24
	pendingSize      = 64
)

// newSeenProfiles bounds the memory for acknowledged keys to about limit bytes.
func newSeenProfiles(ttl time.Duration, limit int) *seenProfiles {
	return &seenProfiles{
		ttl: ttl, max: max(1, limit/acknowledgedSize), start: time.Now(),
		acknowledged: map[merge.Key]time.Duration{}, pending: map[merge.Key]*partition{},
	}
}

// skip sets Skip of the duplicates in p, and adds the partitions whose outcome is pending to
// waits. It returns the number of other Profiles and of their samples. Profiles of one payload
// are not duplicates of each other.
func (s *seenProfiles) skip(p *merge.Payload, waits *partitionSet) (profiles, samples int) {
	s.evict()
	for i := range p.Profiles {
		profile := &p.Profiles[i]
		if profile.Skip {
			continue
		}
		if profile.Key != (merge.Key{}) {
			if part := s.pending[profile.Key]; part != nil {
				profile.Skip = true
				waits.add(part)
			} else {
				_, profile.Skip = s.acknowledged[profile.Key]
			}
		}
		if !profile.Skip {
			profiles++
			samples += profile.Samples
		}
	}
	return profiles, samples
}

// acknowledge adds keys that were pending or are new, and returns the time of the last one,
// which is later than that of any before.
func (s *seenProfiles) acknowledge(keys []merge.Key) time.Duration {
	now := time.Since(s.start)
	for _, key := range keys {
		delete(s.pending, key)
		if _, ok := s.acknowledged[key]; !ok { // one payload may have it twice
			s.last = max(now, s.last+1)
			s.acknowledged[key] = s.last
			s.order = append(s.order, acknowledgedKey{key, s.last})
		}
	}
	s.peak = max(s.peak, len(s.acknowledged))
	s.evict()
	return s.last
}

// remove removes the keys of part, except those that were acknowledged again later with
// another partition.
func (s *seenProfiles) remove(part *partition) {
	for _, key := range part.keys {
		if s.pending[key] == part {
			delete(s.pending, key)
		}
		if s.acknowledged[key] <= part.acknowledgedAt {
			delete(s.acknowledged, key)
		}
	}
	s.compact()
}

// evict removes the keys that are older than the time to live, and the oldest of too many.
func (s *seenProfiles) evict() {
	now := time.Since(s.start)
	for ; len(s.order) > 0; s.order = s.order[1:] {
		first := s.order[0]
		if s.isRemoved(first) {
			continue
		}
		if now-first.at < s.ttl && len(s.acknowledged) <= s.max {
			break
		}
		delete(s.acknowledged, first.key)
	}
	s.compact()
	if len(s.acknowledged) == 0 && s.peak > 0 {
		s.acknowledged, s.order, s.peak = map[merge.Key]time.Duration{}, nil, 0
	}
}

// compact bounds the removed keys in order.
func (s *seenProfiles) compact() {
	if len(s.order) > len(s.acknowledged)*3/2+64 {
		s.order = slices.DeleteFunc(s.order, s.isRemoved)
	}
}

func (s *seenProfiles) isRemoved(a acknowledgedKey) bool { return s.acknowledged[a.key] != a.at }

// size returns an estimate of the retained bytes.
func (s *seenProfiles) size() int {
	return acknowledgedSize*s.peak + removedSize*max(0, len(s.order)-s.peak) + pendingSize*len(s.pending)
}
