// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// mergeSettings are what decides which Profiles merge, and how.
type mergeSettings struct {
	sumSnapshots    bool
	snapshotTypes   map[string]bool // sample types whose Profiles are readings
	dropZeroSamples bool
}

// window merges payloads: add, then profiles. It knows no clock, no locks and no
// limits; it is not safe for concurrent use.
type window struct {
	settings mergeSettings
	tables   *dictionary.Tables
	// resources and what is below them, by their content in binary form.
	resources map[string]*resource
	readings  int // ScopeProfiles that must not merge with others
	counts    counts
	size      int // of what is not in tables, in bytes: about
}

// counts are what went into a window.
type counts struct {
	payloads, profiles, samples int
}

type resource struct {
	resource  pcommon.Resource
	schemaURL string
	scopes    map[string]*scope
}

type scope struct {
	scope     pcommon.InstrumentationScope
	schemaURL string
	family    family
	series    map[seriesKey]*series
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
	// original numbers Profiles with an original payload, which never merge.
	original int
}

// importer reads payloads into windows, and keeps its memory between them.
type importer struct {
	remap    dictionary.Remap
	profiles []importedProfile
	sets     []int32 // by sample of all Profiles: its attribute set, or skipped
	rows     []int32 // by sample of one Profile: its row in the family, or skipped
	key      dictionary.Value
}

// skipped marks a sample that is zero and to be left out: it adds nothing to any
// sum.
const skipped = -1

// importedProfile is one Profile of the payload and what it is in the tables of
// the window.
type importedProfile struct {
	profile  pprofile.Profile
	key      seriesKey
	reading  bool
	firstSet int // in importer.sets
}

func newWindow(settings mergeSettings) *window {
	return &window{settings: settings, tables: dictionary.New(0), resources: map[string]*resource{}}
}

// release forgets the payload and keeps the memory, if it is not too much.
func (im *importer) release() {
	const most = 1 << 20
	clear(im.profiles)
	im.remap.Reset(pprofile.NewProfilesDictionary(), nil)
	if cap(im.sets)+cap(im.rows)+im.remap.Len() > most {
		*im = importer{}
	}
}

// errInvalid marks a payload that is refused for what is in it.
var errInvalid = errors.New("the profiles are refused and nothing of them was taken")

// add merges pd, which it only reads, into w. On an error w is as it was before.
func (im *importer) add(w *window, pd pprofile.Profiles) error {
	if err := dictionary.Check(pd); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	pd, err := dictionary.ResolveReferences(pd)
	if err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	mark := w.tables.Mark()
	im.remap.Reset(pd.Dictionary(), w.tables)
	im.read(w, pd)
	if err := w.tables.Err(); err != nil {
		w.tables.Rollback(mark)
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	im.apply(w, pd)
	w.counts.payloads++
	return nil
}

// read interns all that pd refers to. Only the tables of w change.
func (im *importer) read(w *window, pd pprofile.Profiles) {
	im.profiles, im.sets = im.profiles[:0], im.sets[:0]
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				im.readProfile(w, p)
			}
		}
	}
}

func (im *importer) readProfile(w *window, p pprofile.Profile) {
	r := &im.remap
	key := seriesKey{
		sampleType: r.String(p.SampleType().TypeStrindex()),
		sampleUnit: r.String(p.SampleType().UnitStrindex()),
		periodType: r.String(p.PeriodType().TypeStrindex()),
		periodUnit: r.String(p.PeriodType().UnitStrindex()),
		period:     p.Period(),
		attributes: r.AttributeSet(p.AttributeIndices()),
	}
	imported := importedProfile{profile: p, reading: w.isReading(p, key), firstSet: len(im.sets)}
	if imported.reading && !w.settings.sumSnapshots {
		key.time, key.duration = uint64(p.Time()), p.DurationNano()
	}
	imported.key = key
	im.profiles = append(im.profiles, imported)

	samples := p.Samples()
	var previous pcommon.Int32Slice
	set, known := int32(0), false
	for i := range samples.Len() {
		s := samples.At(i)
		if w.settings.dropZeroSamples && isZeroSample(s) {
			im.sets = append(im.sets, skipped)
			continue
		}
		r.Stack(s.StackIndex())
		r.Link(s.LinkIndex())
		if attributes := s.AttributeIndices(); !known || !attributes.Equal(previous) {
			set = r.AttributeSet(attributes)
			previous, known = attributes, true
		}
		im.sets = append(im.sets, set)
	}
}

// apply adds up what read has interned. It cannot fail.
func (im *importer) apply(w *window, pd pprofile.Profiles) {
	next := 0
	for _, rp := range pd.ResourceProfiles().All() {
		var to *resource
		for _, sp := range rp.ScopeProfiles().All() {
			n := sp.Profiles().Len()
			if n == 0 {
				continue
			}
			if to == nil {
				to = im.resource(w, rp)
			}
			im.applyScope(w, to, sp, im.profiles[next:next+n])
			next += n
		}
	}
}

func (im *importer) applyScope(w *window, to *resource, sp pprofile.ScopeProfiles, profiles []importedProfile) {
	var intervals, readings *scope
	// The Profile before, whose rows serve its siblings, and the scope of those.
	var sibling *importedProfile
	var siblingScope *scope
	for i := range profiles {
		p := &profiles[i]
		target := &intervals
		if p.reading {
			target = &readings
		}
		if *target == nil {
			*target = im.scope(w, to, sp, p.reading)
		}
		if siblingScope != *target {
			sibling = nil
		}
		im.applyProfile(w, *target, p, sibling, i)
		sibling, siblingScope = p, *target
	}
}

func (im *importer) resource(w *window, rp pprofile.ResourceProfiles) *resource {
	im.key = w.tables.AppendMap(im.key[:0], rp.Resource().Attributes())
	im.key = append(im.key, rp.SchemaUrl()...)
	r := w.resources[string(im.key)]
	if r == nil {
		r = &resource{resource: pcommon.NewResource(), schemaURL: rp.SchemaUrl(), scopes: map[string]*scope{}}
		rp.Resource().CopyTo(r.resource)
		w.resources[string(im.key)] = r
		w.size += entrySize + 4*len(im.key)
	}
	r.resource.SetDroppedAttributesCount(max(r.resource.DroppedAttributesCount(), rp.Resource().DroppedAttributesCount()))
	return r
}

func (im *importer) scope(w *window, r *resource, sp pprofile.ScopeProfiles, reading bool) *scope {
	im.key = w.tables.AppendMap(im.key[:0], sp.Scope().Attributes())
	im.key = im.key.AppendKey(sp.Scope().Name()).AppendKey(sp.Scope().Version()).AppendKey(sp.SchemaUrl())
	if reading && !w.settings.sumSnapshots {
		w.readings++
		im.key = im.key.AppendInt(int64(w.readings))
	}
	s := r.scopes[string(im.key)]
	if s == nil {
		s = &scope{scope: pcommon.NewInstrumentationScope(), schemaURL: sp.SchemaUrl(), series: map[seriesKey]*series{}}
		sp.Scope().CopyTo(s.scope)
		r.scopes[string(im.key)] = s
		w.size += entrySize + 4*len(im.key)
	}
	s.scope.SetDroppedAttributesCount(max(s.scope.DroppedAttributesCount(), sp.Scope().DroppedAttributesCount()))
	return s
}

// entrySize is about what a resource, a scope or a series takes beyond its own
// content, in bytes.
const entrySize = 512

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

func (im *importer) applyProfile(w *window, to *scope, p *importedProfile, sibling *importedProfile, place int) {
	w.counts.profiles++
	samples := p.profile.Samples()
	w.counts.samples += samples.Len()
	if len(p.profile.OriginalPayload().AsRaw()) > 0 || p.profile.OriginalPayloadFormat() != "" {
		p.key.original = w.counts.profiles
	}
	sets := im.sets[p.firstSet:]
	old := pprofile.NewSampleSlice()
	if sibling != nil {
		old = sibling.profile.Samples()
	} else {
		im.rows = im.rows[:0]
	}
	target := seriesOf{w: w, scope: to, profile: p, place: place}
	w.size -= to.family.samples.Retained()
	for i := range samples.Len() {
		s := samples.At(i)
		if i == len(im.rows) {
			im.rows = append(im.rows, skipped)
		}
		if sets[i] == skipped {
			if i >= old.Len() || !sameIdentity(s, old.At(i)) {
				im.rows[i] = skipped
			}
			continue
		}
		if im.rows[i] == skipped || i >= old.Len() || !sameIdentity(s, old.At(i)) {
			im.rows[i] = to.family.row(im.remap.Stack(s.StackIndex()), sets[i], im.remap.Link(s.LinkIndex()))
		}
		values, times := s.Values(), s.TimestampsUnixNano()
		switch {
		case times.Len() == 0 && values.Len() == 0: // it says nothing
		case times.Len() == 0:
			target.of(shapeValues).addValues(im.rows[i], values)
		case values.Len() == 0:
			target.of(shapeTimes).addTimes(im.rows[i], values, times)
		default:
			target.of(shapeBoth).addTimes(im.rows[i], values, times)
		}
	}
	if target.found == [shapes]*series{} {
		target.of(shapeValues) // nothing happened, which is worth saying too
	}
	target.done()
	w.size += to.family.samples.Retained()
}

// isZeroSample tells whether s says that nothing happened: its values are all 0
// and it has no timestamps.
func isZeroSample(s pprofile.Sample) bool {
	values := s.Values()
	if s.TimestampsUnixNano().Len() > 0 || values.Len() == 0 {
		return false
	}
	for i := range values.Len() {
		if values.At(i) != 0 {
			return false
		}
	}
	return true
}

// sameIdentity compares two samples of one dictionary. It may say no of equal
// ones.
func sameIdentity(a, b pprofile.Sample) bool {
	return a.StackIndex() == b.StackIndex() && a.LinkIndex() == b.LinkIndex() &&
		a.AttributeIndices().Equal(b.AttributeIndices())
}

// seriesOf finds the series of one Profile by shape, and tells each once that
// the Profile went into it.
type seriesOf struct {
	w       *window
	scope   *scope
	profile *importedProfile
	place   int
	found   [shapes]*series
}

func (f *seriesOf) of(s shape) *series {
	if f.found[s] == nil {
		key := f.profile.key
		key.shape = s
		to := f.scope.series[key]
		if to == nil {
			to = &series{key: key, place: f.place}
			f.scope.series[key] = to
			f.w.size += entrySize
		}
		f.w.size -= to.retained()
		to.include(f.profile.profile, f.place)
		f.found[s] = to
	}
	return f.found[s]
}

// done ends the addition of a Profile. One that went into several series leaves its
// id in none of them.
func (f *seriesOf) done() {
	parts := 0
	for _, s := range f.found {
		if s != nil {
			f.w.size += s.retained()
			parts++
		}
	}
	for _, s := range f.found {
		if s != nil && parts > 1 {
			s.id = pprofile.ProfileID{}
		}
	}
}

// retained is about how much memory w holds on to, in bytes.
func (w *window) retained() int { return w.tables.Retained() + w.size }
