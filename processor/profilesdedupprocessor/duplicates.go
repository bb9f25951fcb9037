// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"slices"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
)

// seenProfiles holds the keys of Profiles that were acknowledged within a time to live, and of
// those whose outcome is pending. Profiles with these keys are duplicates. The processor's mutex
// guards it.
type seenProfiles struct {
	ttl   time.Duration // 0: no key is kept
	limit int           // bytes of acknowledged keys; more evict the oldest

	acknowledged map[merge.Key]*outcome // with which a key was acknowledged
	order        []acknowledgedKey      // all of acknowledged, the oldest first
	pending      map[merge.Key]*outcome // which has the outcome of a key
}

type acknowledgedKey struct {
	key    merge.Key
	result *outcome
	at     time.Time
}

// acknowledgedSize estimates the bytes that an acknowledged key takes.
const acknowledgedSize = 96

func newSeenProfiles(ttl time.Duration, limit int) *seenProfiles {
	return &seenProfiles{
		ttl: ttl, limit: limit, acknowledged: map[merge.Key]*outcome{}, pending: map[merge.Key]*outcome{},
	}
}

// uniqueProfiles are the Profiles of a payload that are not duplicates.
type uniqueProfiles struct {
	skip              []bool // the others, by index
	profiles, samples int
}

// unique returns the Profiles of p that are not duplicates, and the partitions whose outcome is that of duplicates.
// Profiles of one payload are not duplicates of each other.
func (s *seenProfiles) unique(p *merge.Payload) (u uniqueProfiles, waits outcomeSet) {
	s.evict()
	waits = outcomeSet{}
	for i := range p.Profiles {
		profile := &p.Profiles[i]
		result := s.pending[profile.Key]
		if result != nil {
			waits[result] = true
		}
		skip := result != nil || s.acknowledged[profile.Key] != nil // no Profile has the zero key there
		if u.skip = append(u.skip, skip); !skip {
			u.profiles++
			u.samples += profile.Samples
		}
	}
	return u, waits
}

// acknowledge adds keys of result that were pending or are new.
func (s *seenProfiles) acknowledge(result *outcome, keys ...merge.Key) {
	now := time.Now()
	for _, key := range keys {
		delete(s.pending, key)
		if s.acknowledged[key] == nil { // one payload may have it twice
			s.acknowledged[key] = result
			s.order = append(s.order, acknowledgedKey{key, result, now})
		}
	}
	s.evict()
}

// accept acknowledges the keys of result that are pending.
func (s *seenProfiles) accept(result *outcome) {
	pending := slices.DeleteFunc(result.keys, func(key merge.Key) bool { return s.pending[key] != result })
	s.acknowledge(result, pending...)
}

// remove removes the keys of result, except those that were acknowledged again later with
// another partition.
func (s *seenProfiles) remove(result *outcome) {
	before := len(s.acknowledged)
	for _, key := range result.keys {
		if s.pending[key] == result {
			delete(s.pending, key)
		}
		if s.acknowledged[key] == result {
			delete(s.acknowledged, key)
		}
	}
	if len(s.acknowledged) < before {
		s.order = slices.DeleteFunc(s.order, func(a acknowledgedKey) bool { return a.result == result })
	}
}

// evict removes the keys that are older than the time to live, and the oldest of too many.
func (s *seenProfiles) evict() {
	for len(s.order) > 0 && (time.Since(s.order[0].at) >= s.ttl || s.size() > max(s.limit, acknowledgedSize)) {
		delete(s.acknowledged, s.order[0].key)
		s.order = s.order[1:]
	}
}

// size returns an estimate of the bytes of acknowledged keys. Those of pending ones are in the size of
// their windows.
func (s *seenProfiles) size() int { return acknowledgedSize * len(s.order) }
