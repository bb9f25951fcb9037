// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// importer adds payloads to windows, and keeps its memory between them.
type importer struct {
	remap      dictionary.Remap
	profiles   []importedProfile
	identities []identity
	// By sample of all Profiles: its place in identities. skipped is a sample that is
	// left out and not known; one that is left out and known has the complement.
	samples []int32
	// By identity: its row in the family of its scope of intervals, and of readings; or
	// skipped.
	rows    [2][]int32
	sources []source // by sample of all Profiles
	touched []string // partitions that the payload goes into; its receiver's once merged

	bases    []dictionary.Base
	dropped  []bool // by source attribute: it is left out of samples
	filtered pcommon.Int32Slice
	indices  []int32
	singles  []int32 // by source attribute: the set of it alone plus one, 0 for unknown
	key      dictionary.Value
	original dictionary.Value
}

// identity is what tells samples apart, in the tables of the window.
type identity struct{ stack, set, link int32 }

const skipped = -1 << 31

// source is what a sample is in the payload: its identity, but for the attributes after
// the first.
type source struct {
	stack, link, attributes, attribute int32 // attributes is how many
}

func sourceOf(s pprofile.Sample) source {
	attributes := s.AttributeIndices()
	from := source{stack: s.StackIndex(), link: s.LinkIndex(), attributes: int32(attributes.Len())}
	if from.attributes > 0 {
		from.attribute = attributes.At(0)
	}
	return from
}

// importedProfile is one Profile of the payload and what it is in the tables of
// the window.
type importedProfile struct {
	profile pprofile.Profile
	key     seriesKey
	reading bool
	repeat  bool // it is not to be added
	first   int  // in importer.samples
	// The identities that are its own, and not its siblings' before it.
	firstIdentity, lastIdentity int
}

// release forgets the payload and keeps the memory, if it is not too much.
func (im *importer) release() {
	const most = 1 << 20
	clear(im.profiles)
	im.remap.Reset(pprofile.NewProfilesDictionary(), nil)
	if cap(im.identities)*3+cap(im.samples)*5+cap(im.rows[0])*2+im.remap.Len() > most {
		*im = importer{}
	}
}

// errInvalid marks a payload that is refused for what is in it.
var errInvalid = errors.New("the profiles are refused and nothing of them was taken")

// checked returns pd, which it only reads, or what is to be used in its place: a copy
// in which nothing is hidden. Only such payloads may be merged.
func checked(pd pprofile.Profiles) (pprofile.Profiles, error) {
	if err := dictionary.Check(pd); err != nil {
		return pd, fmt.Errorf("%w: %w", errInvalid, err)
	}
	pd, err := dictionary.ResolveReferences(pd)
	if err == nil {
		err = checkKeys(pd)
	}
	if err != nil {
		return pd, fmt.Errorf("%w: %w", errInvalid, err)
	}
	return pd, nil
}

// checkKeys refuses resources and scopes with two attributes of one key: which of them
// counts would be up to who reads them.
func checkKeys(pd pprofile.Profiles) error {
	for i, rp := range pd.ResourceProfiles().All() {
		if key, ok := repeatedKey(rp.Resource().Attributes()); ok {
			return fmt.Errorf("resource_profiles[%d].resource has two attributes with the key %q; keys must be unique", i, key)
		}
		for j, sp := range rp.ScopeProfiles().All() {
			if key, ok := repeatedKey(sp.Scope().Attributes()); ok {
				return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].scope has two attributes with the key %q; keys must be unique", i, j, key)
			}
		}
	}
	return nil
}

// repeatedKey returns a key that m has twice, once it is made UTF-8.
func repeatedKey(m pcommon.Map) (string, bool) {
	var few [16]string
	keys := few[:0]
	for key := range m.All() {
		keys = append(keys, valid(key))
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return keys[i], true
		}
	}
	return "", false
}

// add merges pd, which it only reads, into w. On an error w is as it was before.
func (im *importer) add(w *window, pd pprofile.Profiles) error {
	pd, err := checked(pd)
	if err != nil {
		return err
	}
	_, err = im.merge(w, pd, nil)
	return err
}

// merge is add for a payload that has been checked, without those of its Profiles
// that repeats says are not to be added; they are counted through, over all scopes. It
// returns the keys of the partitions that the payload went into.
func (im *importer) merge(w *window, pd pprofile.Profiles, repeats []bool) (touched []string, err error) {
	mark := w.tables.Mark()
	im.remap.Coarsening = w.settings.coarsening
	im.remap.Reset(pd.Dictionary(), w.tables)
	im.resetAttributes(w, pd.Dictionary())
	if err := im.read(w, pd, repeats); err != nil {
		w.tables.Rollback(mark)
		return nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	w.counts.payloads++
	im.apply(w, pd)
	touched, im.touched = im.touched, nil
	return touched, nil
}

func (im *importer) resetAttributes(w *window, d pprofile.ProfilesDictionary) {
	n := d.AttributeTable().Len()
	im.singles = slices.Grow(im.singles[:0], n)[:n]
	clear(im.singles)
	im.dropped = im.dropped[:0]
	if len(w.settings.dropSampleAttributes) > 0 {
		im.filtered = pcommon.NewInt32Slice()
		for _, a := range d.AttributeTable().All() {
			key := ""
			if int(a.KeyStrindex()) < d.StringTable().Len() {
				key = d.StringTable().At(int(a.KeyStrindex()))
			}
			im.dropped = append(im.dropped, w.settings.dropSampleAttributes[key])
		}
	}
}

// read interns all that pd refers to. Only the tables of w change. The error is that of the
// tables, with the Profile that it came with.
func (im *importer) read(w *window, pd pprofile.Profiles, repeats []bool) error {
	im.profiles, im.samples, im.identities = im.profiles[:0], im.samples[:0], im.identities[:0]
	im.sources = im.sources[:0]
	for i, rp := range pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			// The Profile before, whose identities serve its siblings: they mostly are the
			// same in the same order.
			var sibling *importedProfile
			for k, p := range sp.Profiles().All() {
				n := len(im.profiles)
				im.profiles = append(im.profiles, importedProfile{
					profile: p, first: len(im.samples),
					firstIdentity: len(im.identities), lastIdentity: len(im.identities),
				})
				if n < len(repeats) && repeats[n] {
					im.profiles[n].repeat = true
					continue
				}
				im.readHeader(w, &im.profiles[n])
				if isVerbatim(p) {
					im.readVerbatim(p.Samples())
				} else {
					im.readSamples(w, p.Samples(), sibling)
					sibling = &importedProfile{profile: p, first: im.profiles[n].first}
				}
				im.profiles[n].lastIdentity = len(im.identities)
				if err := w.tables.Err(); err != nil {
					return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].profiles[%d]: %w", i, j, k, err)
				}
			}
		}
	}
	return nil
}

func (im *importer) readHeader(w *window, to *importedProfile) {
	r, p := &im.remap, to.profile
	key := seriesKey{
		sampleType: r.String(p.SampleType().TypeStrindex()),
		sampleUnit: r.String(p.SampleType().UnitStrindex()),
		periodType: r.String(p.PeriodType().TypeStrindex()),
		periodUnit: r.String(p.PeriodType().UnitStrindex()),
		period:     p.Period(),
		attributes: r.AttributeSet(p.AttributeIndices()),
	}
	to.reading = w.isReading(p, key)
	if to.reading && w.settings.snapshots == snapshotsKeep {
		key.time, key.duration = uint64(p.Time()), p.DurationNano()
	}
	to.key = key
}

func (im *importer) readSamples(w *window, samples pprofile.SampleSlice, sibling *importedProfile) {
	var old pprofile.SampleSlice
	known, first := 0, 0
	if sibling != nil {
		old, first = sibling.profile.Samples(), sibling.first
		known = old.Len()
	}
	for i := range samples.Len() {
		s := samples.At(i)
		n := int32(skipped)
		from := sourceOf(s)
		im.sources = append(im.sources, from)
		if i < known && from == im.sources[first+i] &&
			(from.attributes < 2 || s.AttributeIndices().Equal(old.At(i).AttributeIndices())) {
			if n = im.samples[first+i]; n < 0 && n != skipped {
				n = ^n
			}
		}
		if w.settings.dropZeroSamples && isZeroSample(s) {
			if n >= 0 {
				n = ^n
			}
			im.samples = append(im.samples, n)
			continue
		}
		if n == skipped {
			n = int32(len(im.identities))
			im.identities = append(im.identities, identity{
				im.remap.Stack(s.StackIndex()), im.set(s.AttributeIndices()), im.remap.Link(s.LinkIndex()),
			})
		}
		im.samples = append(im.samples, n)
	}
}

// set returns the attribute set of a sample, without what is left out of samples.
func (im *importer) set(attributes pcommon.Int32Slice) int32 {
	if len(im.dropped) > 0 && attributes.Len() > 0 {
		im.indices = im.indices[:0]
		for i := range attributes.Len() {
			if a := attributes.At(i); !im.dropped[a] {
				im.indices = append(im.indices, a)
			}
		}
		im.filtered.FromRaw(im.indices)
		attributes = im.filtered
	}
	if attributes.Len() != 1 || len(im.singles) == 0 {
		return im.remap.AttributeSet(attributes)
	}
	a := attributes.At(0)
	if im.singles[a] == 0 {
		im.singles[a] = im.remap.AttributeSet(attributes) + 1
	}
	return im.singles[a] - 1
}

// apply adds up what read has interned. It cannot fail.
func (im *importer) apply(w *window, pd pprofile.Profiles) {
	im.touched = nil
	// Whether all of the payload is of one partition, which its bases are of then.
	one := len(w.settings.splitBy) == 0 || pd.ResourceProfiles().Len() == 1
	for i := range im.rows {
		im.rows[i] = slices.Grow(im.rows[i][:0], len(im.identities))[:len(im.identities)]
	}
	next := 0
	for _, rp := range pd.ResourceProfiles().All() {
		first := next
		var to *resource
		for _, sp := range rp.ScopeProfiles().All() {
			n := sp.Profiles().Len()
			profiles := im.profiles[next : next+n]
			next += n
			if !slices.ContainsFunc(profiles, func(p importedProfile) bool { return !p.repeat }) {
				continue
			}
			if to == nil {
				to = im.resource(w, rp)
			}
			im.applyScope(w, to, sp, profiles)
		}
		if to != nil && !one && im.remap.Coarsening.RebaseMappings {
			im.applyBases(w, to.partition, im.profiles[first:next])
		}
	}
	if one && len(im.touched) > 0 {
		w.addBases(im.touched[0], im.remap.Bases())
	}
}

// applyBases adds to a partition where the mappings begin that are rebased in profiles.
func (im *importer) applyBases(w *window, partition string, profiles []importedProfile) {
	im.remap.BeginBases()
	im.bases = im.bases[:0]
	for _, p := range profiles {
		if p.repeat {
			continue
		}
		samples := p.profile.Samples()
		for i, n := range im.samples[p.first : p.first+samples.Len()] {
			if n >= 0 {
				im.bases = im.remap.AppendBases(im.bases, samples.At(i).StackIndex())
			}
		}
	}
	w.addBases(partition, im.bases)
}

func (im *importer) applyScope(w *window, to *resource, sp pprofile.ScopeProfiles, profiles []importedProfile) {
	var scopes [2]*scope // of intervals, and of readings
	for i := range profiles {
		p := &profiles[i]
		if p.repeat {
			continue
		}
		kind := 0
		if p.reading {
			kind = 1
		}
		if scopes[kind] == nil {
			scopes[kind] = im.scope(w, to, sp, p.reading)
			rows := im.rows[kind][profiles[0].firstIdentity:profiles[len(profiles)-1].lastIdentity]
			for n := range rows {
				rows[n] = skipped
			}
		}
		im.applyProfile(w, to, scopes[kind], p, i, im.rows[kind])
	}
}

func (im *importer) resource(w *window, rp pprofile.ResourceProfiles) *resource {
	from, schemaURL := rp.Resource(), valid(rp.SchemaUrl())
	attributes := w.settings.keptAttributes(from.Attributes())
	im.key = w.tables.AppendMap(im.key[:0], attributes)
	im.key = append(im.key, schemaURL...)
	if w.settings.snapshots == snapshotsLatest {
		im.original = w.tables.AppendMap(im.original[:0], from.Attributes())
		im.original = append(im.original, schemaURL...)
	}
	r := w.resources[string(im.key)]
	if r == nil {
		r = &resource{
			resource: pcommon.NewResource(), schemaURL: schemaURL,
			partition: w.settings.partitionOf(attributes), scopes: map[string]*scope{},
		}
		attributes.CopyTo(r.resource.Attributes())
		w.resources[string(im.key)] = r
		w.size += entrySize + 4*len(im.key)
		if w.partitions[r.partition] == nil {
			w.partitions[r.partition] = &counts{}
			w.size += partitionSize + len(r.partition)
		}
	}
	w.addEntities(r, from)
	r.resource.SetDroppedAttributesCount(max(r.resource.DroppedAttributesCount(), from.DroppedAttributesCount()))
	if c := w.partitions[r.partition]; c.last != w.counts.payloads {
		im.touched = append(im.touched, r.partition)
		c.last = w.counts.payloads
		c.payloads++
	}
	return r
}

func (im *importer) scope(w *window, r *resource, sp pprofile.ScopeProfiles, isReading bool) *scope {
	im.key = w.tables.AppendMap(im.key[:0], sp.Scope().Attributes())
	name, version, schemaURL := valid(sp.Scope().Name()), valid(sp.Scope().Version()), valid(sp.SchemaUrl())
	im.key = im.key.AppendKey(name).AppendKey(version).AppendKey(schemaURL)
	content := len(im.key)
	latest := isReading && w.settings.snapshots == snapshotsLatest
	switch {
	case latest:
		im.key = append(append(im.key, tagLatest), im.original...)
	case isReading && w.settings.snapshots == snapshotsKeep:
		w.readings++
		im.key = append(im.key, tagKept).AppendInt(int64(w.readings))
	}
	s := r.scopes[string(im.key)]
	if s == nil {
		s = &scope{
			scope: pcommon.NewInstrumentationScope(), schemaURL: schemaURL,
			content: string(im.key[:content]), series: map[seriesKey]*series{},
		}
		if latest {
			s.latest = map[seriesKey]reading{}
		}
		sp.Scope().CopyTo(s.scope)
		s.scope.SetName(name)
		s.scope.SetVersion(version)
		r.scopes[string(im.key)] = s
		w.size += entrySize + 5*len(im.key)
	}
	s.scope.SetDroppedAttributesCount(max(s.scope.DroppedAttributesCount(), sp.Scope().DroppedAttributesCount()))
	return s
}

// valid is s with U+FFFD for each run of bytes that are not UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// What follows the content of a scope in the key of one of readings.
const (
	tagKept   byte = 1
	tagLatest byte = 2
)

func (im *importer) applyProfile(w *window, of *resource, to *scope, p *importedProfile, place int, rows []int32) {
	samples := p.profile.Samples()
	partition := w.partitions[of.partition]
	w.counts.profiles++
	partition.profiles++
	w.counts.samples += samples.Len()
	partition.samples += samples.Len()
	target := seriesOf{w: w, scope: to, profile: p, place: place}
	switch {
	case isVerbatim(p.profile):
		p.key.original = w.counts.profiles
		s := target.of(shapeValues)
		for i, n := range im.samples[p.first : p.first+samples.Len()] {
			s.verbatim.add(im.identities[n], samples.At(i))
		}
		target.done()
		return
	case to.latest != nil && !w.supersede(to, p, partition):
		return
	}
	w.size -= to.family.samples.Retained()
	for i, n := range im.samples[p.first : p.first+samples.Len()] {
		if n < 0 {
			continue
		}
		if rows[n] == skipped {
			identity := im.identities[n]
			rows[n] = to.family.row(identity.stack, identity.set, identity.link)
		}
		s := samples.At(i)
		values, times := s.Values(), s.TimestampsUnixNano()
		switch {
		case times.Len() == 0 && values.Len() == 0: // it says nothing
		case times.Len() == 0 || w.settings.dropTimestamps && values.Len() > 0:
			target.of(shapeValues).addValues(rows[n], values)
		case w.settings.dropTimestamps:
			target.of(shapeValues).column.add(rows[n], int64(times.Len()))
		case values.Len() == 0:
			target.of(shapeTimes).addTimes(rows[n], values, times)
		default:
			target.of(shapeBoth).addTimes(rows[n], values, times)
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
	if values.Len() == 0 || s.TimestampsUnixNano().Len() > 0 {
		return false
	}
	for i := range values.Len() {
		if values.At(i) != 0 {
			return false
		}
	}
	return true
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
