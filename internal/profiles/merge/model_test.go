// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// model says, on written-out profiles, what a window is to hold. It is slow and has
// nothing in common with the window.
type model struct {
	options *Options
	added   []modelProfile
}

type modelProfile struct {
	expand.Profile // as it came
	payload        int
}

func (m *model) add(payload int, all []expand.Profile) {
	for _, e := range all {
		m.added = append(m.added, modelProfile{e, payload})
	}
}

func (m *model) isSnapshot(e *expand.Profile) bool {
	for _, a := range e.Attributes {
		if a.Key == attrkey.Temporality {
			switch a.Value {
			case "delta":
				return false
			case "cumulative", "instant":
				return true
			}
		}
	}
	time := []string{"cpu", "wall"}
	return e.Duration == 0 && !slices.Contains(time, e.Type) && !slices.Contains(time, e.PeriodType) ||
		slices.Contains(m.options.SnapshotSampleTypes, e.Type)
}

// header is what must be equal for two Profiles to be the same reading.
func header(e expand.Profile) string {
	all := []any{e.Resource, e.Scope, e.Type, e.Unit, e.PeriodType, e.PeriodUnit, e.Period, e.Attributes}
	return fmt.Sprintf("%q %#v", all, all) // neither of these alone tells all values apart
}

// slot is the slot of e. The period states its length: see inSlots.
func (m *model) slot(e *expand.Profile) string {
	if m.options.SlotLength == 0 || e.Time == 0 {
		return ""
	}
	length := new(big.Int).Lsh(big.NewInt(int64(m.options.SlotLength)), uint(e.Period))
	end := new(big.Int).Add(new(big.Int).SetUint64(e.Time), new(big.Int).SetUint64(e.Duration))
	return fmt.Sprint(length, " ", end.Div(end, length))
}

// inSlots gives all Profiles times of a few slots, and durations for slots of several lengths:
// for 2^n times the shortest their period is n.
func inSlots(r *rand.Rand, window time.Duration, all []expand.Profile) []expand.Profile {
	for i := range all {
		e, shift := &all[i], r.Uint64N(3)
		length := uint64(window) << shift
		e.Period = int64(shift)
		e.Duration = length - r.Uint64N(length/2)
		if shift == 0 {
			e.Duration = r.Uint64N(3) * length / 2
		}
		e.Time = 1_700_000_000_000_000_000 + r.Uint64N(5)*length/2
		if r.IntN(6) == 0 {
			e.Time = 0
		}
	}
	return all
}

// flush returns what is to come out, of all partitions together.
func (m *model) flush() []expand.Profile {
	type last struct {
		time    uint64
		payload int
	}
	latest := map[string]last{}
	if m.options.Snapshots == SnapshotsLatest {
		for _, e := range m.added {
			if m.isSnapshot(&e.Profile) {
				key, l := m.slot(&e.Profile)+header(e.Profile), last{e.Time, e.payload}
				if old, ok := latest[key]; !ok || l.time > old.time || l.time == old.time && l.payload > old.payload {
					latest[key] = l
				}
			}
		}
	}
	var out []expand.Profile
	for _, e := range m.added {
		if l, ok := latest[m.slot(&e.Profile)+header(e.Profile)]; ok && m.isSnapshot(&e.Profile) &&
			l != (last{e.Time, e.payload}) {
			continue
		}
		out = append(out, m.view(e.Profile, false))
	}
	m.added = nil
	return m.normalize(out)
}

// view returns e without what the options leave out. Of an output, it leaves out only the times of snapshots.
func (m *model) view(e expand.Profile, out bool) expand.Profile {
	s := *m.options
	if out {
		s.DropResourceAttributes, s.DropSampleAttributes, s.DropTimestamps = nil, nil, false
		e.Attributes = without(e.Attributes, []string{attrkey.TimestampsDropped}) // see TestDroppedTimestampsAreStated
	}
	if !m.isSnapshot(&e) || s.Snapshots != SnapshotsKeep {
		if slot := m.slot(&e); slot != "" {
			e.Attributes = append(slices.Clone(e.Attributes), expand.Attribute{Key: "~slot", Value: slot})
		}
	}
	if m.isSnapshot(&e) {
		time := "latest"
		switch s.Snapshots {
		case SnapshotsKeep:
			time = fmt.Sprint(e.Time, e.Duration)
		case SnapshotsSum:
			time = ""
		}
		if time != "" {
			e.Attributes = append(slices.Clone(e.Attributes), expand.Attribute{Key: "~reading", Value: time})
			e.Time, e.Duration = 0, 0
		}
	}
	hasTimes := slices.ContainsFunc(e.Samples, func(s *expand.Sample) bool { return len(s.Points) > 0 })
	if (!m.isSnapshot(&e) || s.Snapshots != SnapshotsKeep) && (!hasTimes || s.DropTimestamps) {
		e.Resource.Attributes = without(e.Resource.Attributes, s.DropResourceAttributes)
	}
	e.Resource.DroppedAttributes = 0 // see TestResourcesCountDroppedAttributes
	frames := map[*expand.Frame]*expand.Frame{}
	samples := e.Samples
	e.Samples = nil
	for _, from := range samples {
		to := &expand.Sample{
			Attributes: without(from.Attributes, s.DropSampleAttributes), Link: from.Link,
			Sum: new(big.Int).Set(from.Sum), Points: from.Points,
		}
		if s.DropTimestamps {
			to.Points = nil
		}
		for _, f := range from.Stack {
			if frames[f] == nil {
				frames[f] = m.frame(*f, out)
			}
			to.Stack = append(to.Stack, frames[f])
		}
		e.Samples = append(e.Samples, to)
	}
	return e
}

func without(attributes []expand.Attribute, dropped []string) []expand.Attribute {
	return slices.DeleteFunc(slices.Clone(attributes), func(a expand.Attribute) bool { return slices.Contains(dropped, a.Key) })
}

func (m *model) frame(f expand.Frame, out bool) *expand.Frame {
	by := m.options.Granularity
	if out || by == dictionary.ByAddress {
		return &f
	}
	if len(f.Lines) > 0 {
		f.Address = 0
	}
	f.Lines = slices.Clone(f.Lines)
	for i := range f.Lines {
		f.Lines[i].Column = 0
		if by == dictionary.ByFunction {
			f.Lines[i].Line = 0
		}
	}
	return &f
}

func (m *model) normalize(all []expand.Profile) []expand.Profile {
	all = expand.Normalize(all, expand.Options{
		Merge: true, SameCode: !m.options.keepAddresses, IgnoreProfileID: true, IgnoreZeroSamples: m.options.DropZeroSamples,
	})
	for i := range all {
		all[i].Duration = 0 // depends on the shapes: see TestTimeRange_P4
	}
	return all
}

// requireSame compares the partitions that come out of a window with what is to.
func (m *model) requireSame(t *testing.T, want []expand.Profile, w *Window) {
	t.Helper()
	var got []expand.Profile
	for _, key := range partitionsOf(w) {
		pd := w.Emit(key)
		report := conformance.Check(pd)
		require.Empty(t, report.Violations())
		require.Zero(t, report.Counts[conformance.SampleOrder])
		for _, rp := range pd.ResourceProfiles().All() {
			require.Equal(t, key, m.options.partition(rp.Resource().Attributes()))
		}
		for _, e := range profiletest.Expand(t, pd) {
			got = append(got, m.view(e, true))
		}
	}
	require.Empty(t, expand.Diff(want, m.normalize(got)))
}

func randomOptions(r *rand.Rand) *Options {
	some := func(keys ...string) (some []string) {
		for _, key := range keys {
			if r.IntN(3) == 0 {
				some = append(some, key)
			}
		}
		return some
	}
	s := &Options{
		Snapshots:              []Snapshots{SnapshotsKeep, SnapshotsLatest, SnapshotsSum}[r.IntN(3)],
		SnapshotSampleTypes:    []string{"alloc_space"},
		SlotLength:             time.Duration(r.IntN(2)) * 10 * time.Second,
		DropTimestamps:         r.IntN(3) == 0,
		DropZeroSamples:        r.IntN(2) == 0,
		keepAddresses:          r.IntN(4) == 0,
		Granularity:            dictionary.Granularity(r.IntN(3)),
		DropSampleAttributes:   some("key-0", "key-1", "key-2"),
		DropResourceAttributes: some("key-0", "key-1", "service.name"),
	}
	for _, key := range []string{"service.name", "key-0"} {
		if r.IntN(3) == 0 && !slices.Contains(s.DropResourceAttributes, key) {
			s.SplitBy = append(s.SplitBy, key)
		}
	}
	return s
}

// moved gives the mappings of all frames another load address. With outside, some frames
// have an address outside their mapping.
func moved(all []expand.Profile, by uint64, outside bool) []expand.Profile {
	for _, e := range all {
		for _, s := range e.Samples {
			for _, f := range s.Stack {
				if f.Mapping.Start != 0 {
					if outside && f.Address%0x3000 == 0 {
						f.Address = 0x10
					}
					f.Mapping.Start += by
					f.Mapping.Limit += by
					f.Address += by
				}
			}
		}
	}
	return all
}

// alike makes resources differ in their service alone, and scopes not at all.
func alike(all []expand.Profile) []expand.Profile {
	for i := range all {
		all[i].Scope = expand.Entity{}
		all[i].Resource.SchemaURL = ""
		all[i].Resource.Attributes = slices.DeleteFunc(all[i].Resource.Attributes, func(a expand.Attribute) bool {
			return a.Key != "service.name"
		})
	}
	return all
}

// randomProfiles returns the profiles of a seed, moved and changed so that those of several seeds merge.
func randomProfiles(r *rand.Rand, seed, round uint64, options *Options) []expand.Profile {
	all := moved(profiletest.GenerateExpanded(profiletest.NewRand(seed)), r.Uint64N(3)<<12, round%3 == 0)
	if round%2 == 0 {
		all = alike(all)
	}
	if options.SlotLength > 0 {
		all = inSlots(r, options.SlotLength, all)
	}
	again := all[len(all)-1] // one Profile is there twice, at one time or at two
	again.Time += r.Uint64N(2)
	return append(all, again)
}

// countParts counts the merged samples without timestamps, and adds up the bytes that the parts of a window retain.
func countParts(w *Window) (samples, size int) {
	size = w.tables.Retained() + cap(w.key) + slotSize*len(w.slots)
	for key := range w.partitions {
		size += partitionSize + len(key)
	}
	for key, r := range w.resources {
		size += entrySize + 4*len(key)
		for key, s := range r.scopes {
			size += scopeSize(len(key)) + s.samples.Retained() + entrySize/4*len(s.latest)
			for _, p := range s.profiles {
				samples += p.column.Len()
				size += entrySize + p.retained()
			}
		}
	}
	return samples, size
}

// Random sequences of additions and flushes, under all options.
func TestWindowEqualsModel_P2(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 60, 100_000)) {
		r := rand.New(rand.NewPCG(seed, round))
		options := randomOptions(r)
		naive := model{options: options}
		w := NewWindow(options)
		flush := func() {
			if naive.requireSame(t, naive.flush(), w); t.Failed() {
				t.Fatalf("round %d, %+v", round, options)
			}
		}
		payload := 0
		for range 2 + r.IntN(4) {
			if r.IntN(4) > 0 {
				// Few seeds, so that entries repeat.
				expanded := randomProfiles(r, seed+round*3+r.Uint64N(3), round, options)
				pd := profiletest.Build(t, expanded...)
				pd.MarkReadOnly() // a change panics
				require.NoErrorf(t, add(w, pd), "round %d", round)
				samples, size := countParts(w)
				require.Equal(t, samples, w.Samples(), "round %d", round)
				require.Equal(t, size, w.Size(), "round %d", round)
				payload++
				naive.add(payload, expanded)
				continue
			}
			flush()
			w = NewWindow(options)
		}
		flush()
	}
}
