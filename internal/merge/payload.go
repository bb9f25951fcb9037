// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/check"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/entry"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/stringref"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/temporality"
	"github.com/otelcol-profiles/otelcol-profiles/internal/validutf8"
)

// ErrInvalid marks a payload that is rejected for its content.
var ErrInvalid = errors.New("invalid profiles: payload rejected")

// Payload is a payload that Prepare has checked.
type Payload struct {
	// Profiles describes the Profiles of all scopes, in their order.
	Profiles []Profile
	// Repeated estimates the bytes that a window retains because Profiles of one scope are in several
	// slots: each slot has the attributes of the scope.
	Repeated int

	pd        pprofile.Profiles // references are resolved; it is only read
	resources []incomingResource
	scopes    []incomingScope
	profiles  []incoming
	// By sample of all Profiles: its identity, an index of identities. A sample that is
	// dropped has the complement of that, or unknown if no sibling has it.
	samples []int32
	sources []pprofile.Sample  // by identity: a sample that has it
	keys    dictionary.Value   // of resources and scopes
	content dictionary.Value   // of the resource, for the keys of Profiles
	types   []sampletypes.Type // of the scopes

	typeMemory sampletypes.Memory

	// Numbers of the payload's entries in the tables of a window.
	window     *Window
	remap      dictionary.Remap
	identities []identity
	missing    bool   // whether a part of an identity or of the key of a Profile is missing there
	dropped    []bool // by source attribute: samples lose it

	adding
}

// payloads keep their memory for later payloads.
var payloads = sync.Pool{New: func() any { return &Payload{} }}

// Profile describes a Profile of a payload.
type Profile struct {
	Key       Key
	Partition string
	Samples   int
	Skip      bool // Window.Add and Subtract ignore the Profile
}

// Key identifies a Profile by profile_id, resource, scope and sample type: it is the
// start of their SHA-256. It is zero for a Profile without a profile_id.
type Key [16]byte

// span is a part of Payload.keys.
type span struct{ start, end int }

// incomingResource is a ResourceProfiles of the payload.
type incomingResource struct {
	from      pprofile.ResourceProfiles
	key       span // its content, without the attributes that resources lose
	original  span // its content, if the latest snapshot of each counts
	partition string
	scopes    int // how many
}

// incomingScope is a ScopeProfiles of the payload.
type incomingScope struct {
	from     pprofile.ScopeProfiles
	key      span               // its content, with the sample types in place of the attributes that list them
	types    []sampletypes.Type // of the pprofs that its Profiles are of; nil if unknown
	profiles int                // how many
}

// incoming is a Profile of the payload.
type incoming struct {
	from  pprofile.Profile
	slot  slot
	first int // its first sample, in Payload.samples
	kept  int // samples that are not dropped
	// identities is how many it and the Profiles before have.
	identities int
	verbatim   bool
	snapshot   bool
	key        profileKey // in the tables of the window; entries that they lack are negative. Add completes it
}

// identity is a sample identity in the tables of a window. A part that they have not is
// negative.
type identity struct{ stack, set, link int32 }

func (i identity) isKnown() bool { return i.stack|i.set|i.link >= 0 }

const unknown = -1 << 31

// Prepare checks pd, describes its Profiles, and looks up its entries in window. window may
// be nil: then Add does so. Payloads may be prepared by several goroutines at once, also while the
// window is being used. Prepare only reads pd, which must not change while the payload is in use.
func Prepare(pd pprofile.Profiles, options *Options, window *Window) (*Payload, error) {
	p := payloads.Get().(*Payload)
	if err := p.prepare(pd, options, window); err != nil {
		p.Release()
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return p, nil
}

// maxPooled is how much memory, in bytes, a payload may keep for the next one.
const maxPooled = 4 << 20

// retained is about the memory that p holds on to, in bytes.
func (p *Payload) retained() int {
	const profile, scope, resource, sample = 256, 64, 72, 28 // with their descriptions, numbers and identities
	return profile*cap(p.profiles) + scope*cap(p.scopes) + resource*cap(p.resources) + sample*cap(p.sources) +
		4*cap(p.samples) + 8*cap(p.rows) + cap(p.keys) + cap(p.content) + cap(p.key) +
		32*cap(p.types) + p.typeMemory.Retained() + p.remap.Retained()
}

// Release gives the memory of p to later payloads, if it is not too much.
func (p *Payload) Release() {
	if p.retained() > maxPooled {
		return
	}
	clear(p.Profiles)
	clear(p.resources)
	clear(p.scopes)
	clear(p.profiles)
	clear(p.sources)
	clear(p.numbered)
	clear(p.types)
	p.typeMemory.Clear()
	p.pd, p.window = pprofile.Profiles{}, nil
	p.remap.Forget()
	payloads.Put(p)
}

func (p *Payload) prepare(pd pprofile.Profiles, options *Options, window *Window) error {
	p.pd, p.window = pd, window
	if !p.read(options) {
		return check.Profiles(pd)
	}
	resolved, err := stringref.Resolve(pd)
	if err != nil {
		return err
	}
	if resolved != pd {
		p.pd = resolved
		p.read(options)
	}
	if p.missing {
		for n, identity := range p.identities {
			if !identity.isKnown() {
				p.remap.Want(p.sources[n], p.dropped)
			}
		}
		p.remap.WantParts()
	}
	return p.describe(options)
}

// read numbers the identities of samples, and looks up in the tables of the window the entries that they and the
// Profiles refer to. It returns false if check.Profiles rejects the payload.
func (p *Payload) read(options *Options) bool {
	p.remap.Coarsening = options.Coarsening
	d := p.pd.Dictionary()
	var view *dictionary.View
	if p.window != nil {
		view = p.window.view.Load()
	}
	p.remap.Find(d, view)
	p.dropped = p.dropped[:0]
	if len(options.DropSampleAttributes) > 0 {
		for _, a := range d.AttributeTable().All() {
			key := validutf8.At(d.StringTable(), a.KeyStrindex())
			p.dropped = append(p.dropped, slices.Contains(options.DropSampleAttributes, key))
		}
	}
	p.profiles, p.samples, p.sources = p.profiles[:0], p.samples[:0], p.sources[:0]
	resources := p.pd.ResourceProfiles()
	for i := range resources.Len() {
		if !entry.BoundedMap(resources.At(i).Resource().Attributes()) {
			return false
		}
		scopes := resources.At(i).ScopeProfiles()
		for j := range scopes.Len() {
			if !entry.BoundedMap(scopes.At(j).Scope().Attributes()) || !p.readScope(scopes.At(j), options) {
				return false
			}
		}
	}
	if 2*len(p.sources) >= d.StackTable().Len() { // otherwise most entries are only of samples that are dropped
		p.remap.FindAll()
	}
	p.find()
	return p.remap.IsValid()
}

// find looks up the identities and the keys of Profiles.
func (p *Payload) find() {
	p.identities, p.missing = p.identities[:0], false
	for i := range p.profiles {
		to := &p.profiles[i]
		p.setKey(to)
		p.missing = p.missing || !to.key.isKnown()
		for _, s := range p.sources[len(p.identities):to.identities] {
			identity := p.identify(s, to.verbatim)
			p.identities = append(p.identities, identity)
			p.missing = p.missing || !identity.isKnown()
		}
	}
}

func (p *Payload) readScope(sp pprofile.ScopeProfiles, options *Options) bool {
	// The Profile before, which usually has the same identities in the same order.
	sibling := -1
	profiles := sp.Profiles()
	for k := range profiles.Len() {
		from := profiles.At(k)
		n := len(p.profiles)
		p.profiles = append(p.profiles, incoming{
			from: from, slot: slotOf(from, uint64(options.SlotLength)), first: len(p.samples), verbatim: isVerbatim(from),
			snapshot: temporality.IsSnapshotProfile(p.pd.Dictionary(), from, options.SnapshotSampleTypes),
		})
		to := &p.profiles[n]
		if to.snapshot && options.Snapshots == SnapshotsKeep {
			to.key.time, to.key.duration, to.slot = uint64(from.Time()), from.DurationNano(), slot{}
		}
		if !p.readSamples(to, sibling, options.DropZeroSamples) {
			return false
		}
		to.identities = len(p.sources)
		if !to.verbatim {
			sibling = n
		}
	}
	return true
}

// setKey sets the numbers of the tables in the key of a Profile.
func (p *Payload) setKey(to *incoming) {
	r, from, key := &p.remap, to.from, &to.key
	key.sampleType, key.sampleUnit = r.String(from.SampleType().TypeStrindex()), r.String(from.SampleType().UnitStrindex())
	key.periodType, key.periodUnit = r.String(from.PeriodType().TypeStrindex()), r.String(from.PeriodType().UnitStrindex())
	key.attributes, key.period = r.AttributeSet(from.AttributeIndices()), from.Period()
}

// readSamples returns false if check.Profiles rejects a sample.
func (p *Payload) readSamples(to *incoming, sibling int, dropZero bool) bool {
	samples := to.from.Samples()
	var old pprofile.SampleSlice
	known, first := 0, 0
	if sibling >= 0 && !to.verbatim {
		old, first = p.profiles[sibling].from.Samples(), p.profiles[sibling].first
		known = old.Len()
	}
	for i := range samples.Len() {
		s := samples.At(i)
		values, times := s.Values(), s.TimestampsUnixNano()
		if values.Len() != times.Len() && values.Len() > 0 && times.Len() > 0 {
			return false
		}
		n := int32(unknown)
		if i < known && sameIdentity(s, old.At(i)) {
			if n = p.samples[first+i]; n < 0 && n != unknown {
				n = ^n
			}
		}
		switch {
		case !dropZero || to.verbatim || !isZeroSample(values, times):
			if n == unknown {
				n = int32(len(p.sources))
				p.sources = append(p.sources, s)
			}
			to.kept++
		case n != unknown:
			n = ^n
		default:
			p.remap.Check(s)
		}
		p.samples = append(p.samples, n)
	}
	return true
}

// identify returns the identity of s in the tables.
func (p *Payload) identify(s pprofile.Sample, verbatim bool) identity {
	dropped := p.dropped
	if verbatim {
		dropped = nil
	}
	stack, set, link := p.remap.Sample(s, dropped)
	return identity{stack, set, link}
}

// sameIdentity returns whether two samples of one payload have the same identity there.
func sameIdentity(a, b pprofile.Sample) bool {
	if a.StackIndex() != b.StackIndex() || a.LinkIndex() != b.LinkIndex() {
		return false
	}
	x, y := a.AttributeIndices(), b.AttributeIndices()
	return x.Len() == y.Len() && (x.Len() == 0 || x.At(0) == y.At(0) && (x.Len() == 1 || x.Equal(y)))
}

// isZeroSample reports whether the values of a sample are all 0 and it has no timestamps.
func isZeroSample(values pcommon.Int64Slice, times pcommon.UInt64Slice) bool {
	if values.Len() == 0 || times.Len() > 0 {
		return false
	}
	for i := range values.Len() {
		if values.At(i) != 0 {
			return false
		}
	}
	return true
}

// Samples returns the number of samples of all Profiles.
func (p *Payload) Samples() (n int) {
	for i := range p.Profiles {
		n += p.Profiles[i].Samples
	}
	return n
}

// describe sets the keys of resources, scopes and Profiles. It rejects resources and scopes with
// two attributes of one key: readers would not agree on which of them counts.
func (p *Payload) describe(options *Options) error {
	p.Profiles, p.resources, p.scopes, p.keys, p.Repeated = p.Profiles[:0], p.resources[:0], p.scopes[:0], p.keys[:0], 0
	p.types = p.types[:0]
	profiles := p.profiles
	for i, rp := range p.pd.ResourceProfiles().All() {
		if key, ok := duplicateKey(rp.Resource().Attributes()); ok {
			return fmt.Errorf("resource_profiles[%d].resource has two attributes with the key %q; keys must be unique", i, key)
		}
		p.describeResource(rp, options)
		for j, sp := range rp.ScopeProfiles().All() {
			if key, ok := duplicateKey(sp.Scope().Attributes()); ok {
				return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].scope has two attributes with the key %q; keys must be unique", i, j, key)
			}
			n := sp.Profiles().Len()
			p.describeScope(sp, profiles[:n], options)
			profiles = profiles[n:]
		}
	}
	return nil
}

func (p *Payload) describeResource(rp pprofile.ResourceProfiles, options *Options) {
	attributes, schemaURL := rp.Resource().Attributes(), validutf8.Repair(rp.SchemaUrl())
	r := incomingResource{from: rp, partition: options.partition(attributes), scopes: rp.ScopeProfiles().Len()}
	start := len(p.keys)
	p.keys = append(entry.AppendMapWithout(p.keys, attributes, options.DropResourceAttributes), schemaURL...)
	r.key = span{start, len(p.keys)}
	if options.Snapshots == SnapshotsLatest {
		p.keys = append(entry.AppendMap(p.keys, attributes), schemaURL...)
		r.original = span{r.key.end, len(p.keys)}
	}
	p.resources = append(p.resources, r)
	if options.ProfileKeys {
		p.content = entry.AppendMap(p.content[:0], attributes).AppendKey(rp.SchemaUrl())
	}
}

func (p *Payload) describeScope(sp pprofile.ScopeProfiles, profiles []incoming, options *Options) {
	s := incomingScope{from: sp, types: p.sampleTypes(sp), profiles: len(profiles)}
	attributes := sp.Scope().Attributes()
	start := len(p.keys)
	p.keys = entry.AppendMapWithout(p.keys, attributes, sampleTypeAttributes)
	for _, t := range s.types {
		p.keys = p.keys.AppendKey(t.Type).AppendKey(t.Unit)
	}
	p.keys = p.keys.AppendInt(int64(len(s.types))).AppendKey(validutf8.Repair(sp.Scope().Name())).
		AppendKey(validutf8.Repair(sp.Scope().Version())).AppendKey(validutf8.Repair(sp.SchemaUrl()))
	s.key = span{start, len(p.keys)}
	p.scopes = append(p.scopes, s)
	p.Repeated += (slotsOf(profiles) - 1) * scopeSize(s.key.end-s.key.start)

	var content [sha256.Size]byte
	if options.ProfileKeys {
		resource := len(p.content)
		p.content = entry.AppendMap(p.content, attributes)
		p.content = p.content.AppendKey(sp.SchemaUrl()).AppendKey(sp.Scope().Name()).AppendKey(sp.Scope().Version())
		content = sha256.Sum256(p.content)
		p.content = p.content[:resource]
	}
	partition := p.resources[len(p.resources)-1].partition
	for i := range profiles {
		from := profiles[i].from
		to := Profile{Partition: partition, Samples: from.Samples().Len()}
		if options.ProfileKeys && !from.ProfileID().IsEmpty() {
			to.Key = p.profileKey(content, from)
		}
		p.Profiles = append(p.Profiles, to)
	}
}

// slotsOf returns the number of different slots of profiles, at least 1.
func slotsOf(profiles []incoming) int {
	var slots map[slot]bool
	for i := range profiles {
		if s := profiles[i].slot; s != profiles[0].slot {
			if slots == nil {
				slots = map[slot]bool{}
			}
			slots[s] = true
		}
	}
	return len(slots) + 1
}

func (p *Payload) profileKey(scope [sha256.Size]byte, profile pprofile.Profile) Key {
	id, sampleType := profile.ProfileID(), profile.SampleType()
	start := len(p.content)
	p.content = append(append(p.content, scope[:]...), id[:]...)
	p.content = p.content.AppendKey(p.text(sampleType.TypeStrindex())).AppendKey(p.text(sampleType.UnitStrindex()))
	sum := sha256.Sum256(p.content[start:])
	p.content = p.content[:start]
	return Key(sum[:16])
}

func (p *Payload) text(i int32) string {
	return validutf8.At(p.pd.Dictionary().StringTable(), i)
}

// duplicateKey returns a key that m has twice, after repair to UTF-8.
func duplicateKey(m pcommon.Map) (string, bool) {
	var few [16]string
	keys := few[:0]
	for key := range m.All() {
		keys = append(keys, validutf8.Repair(key))
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return keys[i], true
		}
	}
	return "", false
}
