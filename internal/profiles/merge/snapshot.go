// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pprofile"
)

// latestSnapshot is the snapshot that a scope holds of one profileKey.
type latestSnapshot struct {
	time              uint64 // nanoseconds since the epoch
	payload           int    // its number in the window
	profiles, samples int    // as received
}

// supersede makes room in s for the snapshot p of the payload that is being added. It
// returns false if s holds a later one. Profiles of one payload with equal keys and times
// are one snapshot.
func (a *addition) supersede(s *scope, key profileKey, p *Profile) bool {
	payload, in := a.counts.Payloads, a.partitions[p.Partition]
	time, samples := uint64(p.from.Time()), p.from.Samples().Len()
	held, ok := s.latest[key]
	switch {
	case ok && held.payload == payload && held.time == time:
		s.latest[key] = latestSnapshot{time, payload, held.profiles + 1, held.samples + samples}
		return true
	case ok && time < held.time:
		a.superseded = append(a.superseded, superseded{in, 1, samples})
		return false
	case !ok:
		a.size += entrySize / 4
	}
	a.superseded = append(a.superseded, superseded{in, held.profiles, held.samples})
	s.latest[key] = latestSnapshot{time, payload, 1, samples}
	for key.shape = range shapes {
		if old := s.profiles[key]; old != nil {
			a.size -= old.size
			a.samples -= old.samples
			delete(s.profiles, key)
		}
	}
	return true
}

// sumOf is the sum of scopes, which it does not change: the latest snapshots of several
// resources that have become equal.
func sumOf(scopes []*scope) *scope {
	if len(scopes) == 1 {
		return scopes[0]
	}
	sum := &scope{
		pdata: scopes[0].pdata, schemaURL: scopes[0].schemaURL, types: scopes[0].types, slot: scopes[0].slot,
		profiles: map[profileKey]*mergedProfile{},
	}
	for _, s := range scopes {
		rows := make([]int32, s.samples.Len())
		for row := range rows {
			rows[row] = sum.samples.Number(s.samples.Identity(int32(row)))
		}
		for key, from := range s.profiles {
			to := sum.profiles[key]
			if to == nil {
				to = &mergedProfile{key: key, place: from.place}
				sum.profiles[key] = to
			}
			to.addSnapshot(from, rows)
		}
	}
	return sum
}

// addSnapshot adds from; rows has the row in p of each row of from. A sum of snapshots has the
// time of the last one and ends when all have ended, in their slot: it covers no interval.
func (p *mergedProfile) addSnapshot(from *mergedProfile, rows []int32) {
	p.place = min(p.place, from.place)
	p.sources += from.sources
	p.id = pprofile.ProfileID{}
	if p.sources == 1 {
		p.id = from.id
	}
	p.start, p.end = max(p.start, from.start), max(p.end, from.end)
	p.duration = max(p.duration, from.length())
	p.cover(p.start, p.end)
	p.of.addAll(&from.of)
	p.untimed = p.untimed || from.untimed
	p.dropped += min(from.dropped, math.MaxUint32-p.dropped)
	for i := range int32(from.column.Len()) {
		p.column.Add(rows[from.column.Row(i)], from.column.Sum(i), false)
	}
	for _, e := range from.events {
		e.row = rows[e.row]
		p.events = append(p.events, e)
	}
}
