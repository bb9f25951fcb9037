// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// mergeSettings are what decides which Profiles merge, and how.
type mergeSettings struct {
	snapshots       string          // keep, latest or sum
	snapshotTypes   map[string]bool // sample types whose Profiles are readings
	dropTimestamps  bool
	dropZeroSamples bool
	coarsening      dictionary.Coarsening
	// Keys of attributes that are left out.
	dropSampleAttributes, dropResourceAttributes map[string]bool
	splitBy                                      []string // keys of resource attributes
}

// window merges payloads: an importer adds, an emitter writes what has been merged.
// It knows no clock, no locks and no limits; it is not safe for concurrent use.
type window struct {
	settings mergeSettings
	tables   *dictionary.Tables
	// resources and what is below them, by their content in binary form.
	resources map[string]*resource
	// partitions are what split_by makes of the window, by key; there is one without.
	partitions map[string]*counts
	// bases are where rebased mappings begin: the least address that is in a partition, by
	// its key.
	bases    map[string]map[int32]uint64
	readings int // ScopeProfiles that must not merge with others
	counts   counts
	size     int // of what is not in tables, in bytes: about
}

// counts are what went into a window, or what is in a partition of it.
type counts struct {
	payloads, profiles, samples int
	superseded                  int // profiles that gave way to a later reading; a partition's others do not count them
	last                        int // of a partition: the number in the window of its last payload
}

type resource struct {
	resource  pcommon.Resource
	schemaURL string
	partition string
	scopes    map[string]*scope
	entities  entities
}

type scope struct {
	scope     pcommon.InstrumentationScope
	schemaURL string
	content   string // what makes it equal to others, in binary form
	family    family
	series    map[seriesKey]*series
	// latest says, in a scope of readings of which only the last counts, which that
	// is, by key without shape.
	latest map[seriesKey]reading
}

// reading is which of the readings of a scope is held.
type reading struct {
	time              uint64 // nanoseconds since the epoch
	payload           int    // its number in the window
	profiles, samples int    // that it came as
}

// seriesKey tells the merged Profiles of a scope apart. Strings and sets are
// indices into the tables.
type seriesKey struct {
	sampleType, sampleUnit int32
	periodType, periodUnit int32
	period                 int64
	attributes             int32
	shape                  shape
	// Readings of different times do not merge.
	time, duration uint64
	// original numbers Profiles with an original payload, which never merge: see verbatim.
	original int
}

func newWindow(settings mergeSettings) *window {
	return &window{
		settings: settings, tables: dictionary.New(0), resources: map[string]*resource{},
		partitions: map[string]*counts{}, bases: map[string]map[int32]uint64{},
	}
}

// About what a resource, a scope or a series, a mapping's base and a partition take
// beyond their own content, in bytes.
const (
	entrySize     = 512
	baseSize      = 32
	partitionSize = 256
)

// isReading tells whether the values of p are a state at its time, and not what
// happened during its duration.
func (w *window) isReading(p pprofile.Profile, key seriesKey) bool {
	switch w.tables.SetString(key.attributes, attrTemporality) {
	case "delta":
		return false
	case "cumulative", "instant":
		return true
	}
	return p.DurationNano() == 0 || w.settings.snapshotTypes[w.tables.StringAt(key.sampleType)]
}

// attrTemporality is the Profile attribute that tells what its values are:
// delta, cumulative or instant.
const attrTemporality = "profile.temporality"

// supersede makes room in s, which is of the given partition, for the reading p of the
// payload that is being added, and tells whether it is to be added: one that is earlier
// than what is held is not. What one payload has of one reading belongs together.
func (w *window) supersede(s *scope, p *importedProfile, partition *counts) bool {
	key, payload := p.key, w.counts.payloads
	time, samples := uint64(p.profile.Time()), p.profile.Samples().Len()
	held, ok := s.latest[key]
	switch {
	case ok && held.payload == payload && held.time == time:
		s.latest[key] = reading{time, payload, held.profiles + 1, held.samples + samples}
		return true
	case ok && time < held.time:
		w.gaveWay(partition, 1, samples)
		return false
	case !ok:
		w.size += entrySize / 4
	}
	w.gaveWay(partition, held.profiles, held.samples)
	s.latest[key] = reading{time, payload, 1, samples}
	for key.shape = range shapes {
		if old := s.series[key]; old != nil {
			w.size -= entrySize + old.retained()
			delete(s.series, key)
		}
	}
	return true
}

// addBases notes where rebased mappings began in what was added to a partition.
func (w *window) addBases(partition string, bases []dictionary.Base) {
	if len(bases) == 0 {
		return
	}
	all := w.bases[partition]
	if all == nil {
		all = map[int32]uint64{}
		w.bases[partition] = all
	}
	for _, base := range bases {
		start, ok := all[base.Mapping]
		if !ok {
			w.size += baseSize
		}
		if !ok || base.Start < start {
			all[base.Mapping] = base.Start
		}
	}
}

// gaveWay notes that what was counted in partition is not in it any more.
func (w *window) gaveWay(partition *counts, profiles, samples int) {
	w.counts.superseded += profiles
	partition.superseded += profiles
	partition.profiles -= profiles
	partition.samples -= samples
}

// retained is about how much memory w holds on to, in bytes.
func (w *window) retained() int { return w.tables.Retained() + w.size }
