// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
)

// ErrNoValues marks an invalid payload whose samples are empty. In the format before OTLP 1.10, values have the field
// number of today's attributes.
var ErrNoValues = errors.New("have neither values nor timestamps: the sender probably uses the OTLP profiles format before 1.10; upgrade it")

// Payload is a payload that Check has accepted.
type Payload struct {
	// Profiles describes the Profiles of all scopes, in their order.
	Profiles []Profile
	// Repeated estimates the bytes that a window retains because Profiles of one scope are in several slots, each of
	// which has the attributes of the scope, because snapshots and Profiles with timestamps may keep attributes of their resource that others lose,
	// and because Profiles may share the attribute with their table of processes.
	Repeated int

	pd      pprofile.Profiles // references are resolved; it is only read
	dropped []bool            // by attribute: samples lose it
	aside   []bool            // by attribute: its table of processes or another that does not identify a Profile. nil if none is
	scratch dictionary.Value  // what is hashed
}

// Profile describes a Profile of a payload.
type Profile struct {
	Key       Key
	Partition string
	Samples   int

	from     pprofile.Profile
	scope    *incomingScope
	place    int // its index in the scope
	slot     slot
	snapshot bool
	timed    bool      // its timestamps, and so the attributes of its resource, are kept: its threads are those of one process
	untimed  bool      // it says that its timestamps were dropped
	table    int       // the index of the attribute that holds its table of processes, or -1
	division *division // nil if it is in one slot
	typeHash uint64    // of service, profile type and sample type, if these are limited
}

// Key identifies a Profile by profile_id, resource, scope and sample type: it is the
// start of their SHA-256. It is zero for a Profile without a profile_id.
type Key [16]byte

// incomingResource is a ResourceProfiles of the payload.
type incomingResource struct {
	from      pprofile.ResourceProfiles
	key       []byte // its content, without the attributes that resources lose
	original  []byte // its content
	process   uint64 // its hash, see processes.HashResource
	left      uint32 // how many attributes resources lose
	service   string
	partition string
}

// incomingScope is a ScopeProfiles of the payload.
type incomingScope struct {
	resource *incomingResource
	from     pprofile.ScopeProfiles
	key      []byte             // its content, with the sample types in place of the attributes that list them
	types    []sampletypes.Type // of the pprofs that its Profiles are of; nil if unknown
}

// Check returns pd as a payload that a window with these options can add. It is safe for concurrent use. pd is only read,
// and must not change while the payload is in use.
//
// Check rejects a payload whose samples all have neither values nor timestamps, and what dictionary.CheckToMerge rejects. It
// also rejects resources and scopes with two attributes of one key: readers would not agree on which of them counts.
func Check(pd pprofile.Profiles, options *Options) (*Payload, error) {
	p := &Payload{}
	if err := p.check(pd, options); err != nil {
		return nil, fmt.Errorf("invalid profiles: payload rejected: %w", err)
	}
	return p, nil
}

func (p *Payload) check(pd pprofile.Profiles, options *Options) (err error) {
	if n := emptySamples(pd); n > 0 { // their attributes may be outside the table
		return fmt.Errorf("all %d samples %w", n, ErrNoValues)
	}
	if len(options.DropSampleAttributes) > 0 {
		table := pd.Dictionary().AttributeTable()
		p.dropped = make([]bool, table.Len())
		for i := range p.dropped {
			key := dictionary.ValidString(pd.Dictionary().StringTable(), table.At(i).KeyStrindex())
			p.dropped[i] = slices.Contains(options.DropSampleAttributes, key)
		}
	}
	if p.pd, err = dictionary.CheckToMerge(pd, p.dropped); err != nil {
		return err
	}
	p.Profiles = make([]Profile, 0, p.pd.ProfileCount())
	for i, rp := range p.pd.ResourceProfiles().All() {
		if key, ok := duplicateKey(rp.Resource().Attributes()); ok {
			return fmt.Errorf("resource_profiles[%d].resource has two attributes with the key %q; keys must be unique", i, key)
		}
		r := p.describeResource(rp, options)
		for j, sp := range rp.ScopeProfiles().All() {
			if key, ok := duplicateKey(sp.Scope().Attributes()); ok {
				return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].scope has two attributes with the key %q; keys must be unique", i, j, key)
			}
			p.describeScope(r, sp, options)
		}
	}
	return nil
}

// keyRoom is enough for the keys of most resources and scopes, in bytes.
const keyRoom = 256

func (p *Payload) describeResource(rp pprofile.ResourceProfiles, options *Options) *incomingResource {
	attributes, schemaURL, drop := rp.Resource().Attributes(), dictionary.ValidUTF8(rp.SchemaUrl()), options.DropResourceAttributes
	r := &incomingResource{
		from: rp, process: processes.HashResource(attributes), partition: options.partition(attributes), service: dictionary.TextOf(attributes, "service.name"),
		key: append(dictionary.AppendMapWithout(make(dictionary.Value, 0, keyRoom), attributes, drop), schemaURL...),
	}
	if r.original = r.key; len(drop) > 0 {
		r.original = append(dictionary.AppendMap(nil, attributes), schemaURL...)
		for key := range attributes.All() {
			if slices.Contains(drop, key) {
				r.left++
			}
		}
		if options.Snapshots == SnapshotsKeep || !options.DropTimestamps {
			p.Repeated += entrySize + 4*len(r.original)
		}
	}
	return r
}

// describeScope describes a scope and its Profiles.
func (p *Payload) describeScope(r *incomingResource, sp pprofile.ScopeProfiles, options *Options) {
	s := &incomingScope{resource: r, from: sp, types: p.sampleTypes(sp)}
	key := dictionary.AppendMapWithout(make(dictionary.Value, 0, keyRoom), sp.Scope().Attributes(), sampleTypeAttributes)
	for _, t := range s.types {
		key = key.AppendKey(t.Type).AppendKey(t.Unit)
	}
	key = key.AppendInt(int64(len(s.types))).AppendKey(dictionary.ValidUTF8(sp.Scope().Name())).
		AppendKey(dictionary.ValidUTF8(sp.Scope().Version())).AppendKey(dictionary.ValidUTF8(sp.SchemaUrl()))
	s.key = binary.BigEndian.AppendUint64(key, uint64(len(s.types))) // no type can be taken for a name
	var content [sha256.Size]byte                                    // of resource and scope
	if options.ProfileKeys {
		key := dictionary.AppendMap(p.scratch[:0], r.from.Resource().Attributes()).AppendKey(r.from.SchemaUrl())
		key = dictionary.AppendMap(key, sp.Scope().Attributes())
		p.scratch = key.AppendKey(sp.SchemaUrl()).AppendKey(sp.Scope().Name()).AppendKey(sp.Scope().Version())
		content = sha256.Sum256(p.scratch)
	}
	profileType := dictionary.TextOf(sp.Scope().Attributes(), attrkey.ProfileType)
	slots := map[slot]bool{} // of neighbours in different ones
	for i, from := range sp.Profiles().All() {
		to := Profile{
			Partition: r.partition, Samples: from.Samples().Len(), from: from, scope: s, place: i,
			snapshot: sampletypes.IsSnapshot(p.pd.Dictionary(), from, options.SnapshotSampleTypes),
			table:    processes.Find(p.pd.Dictionary(), from),
		}
		if to.table >= 0 {
			p.describeTable(to.table)
		}
		to.untimed = p.findUntimed(from)
		to.timed = !options.DropTimestamps && len(options.DropResourceAttributes) > 0 && hasTimestamps(from)
		if !to.snapshot || options.Snapshots != SnapshotsKeep {
			to.slot = slotOf(from, options)
		}
		if options.SlotByStart && !to.snapshot {
			p.divide(&to, options, len(s.key))
		}
		if i > 0 {
			if before := p.Profiles[len(p.Profiles)-1].slot; before != to.slot {
				slots[before], slots[to.slot] = true, true
			}
		}
		if options.ProfileKeys && !from.ProfileID().IsEmpty() {
			to.Key = p.profileKey(content, from)
		}
		if options.MaxTypes > 0 {
			to.typeHash = p.typeHash(r.service, profileType, from.SampleType())
		}
		p.Profiles = append(p.Profiles, to)
	}
	p.Repeated += max(0, len(slots)-1) * scopeSize(len(s.key))
}

// describeTable counts what a window takes for the rows of a table of processes, which is the value of an attribute.
func (p *Payload) describeTable(attribute int) {
	const leastRow = 13 // bytes of a table
	p.setAside(attribute)
	if value := p.pd.Dictionary().AttributeTable().At(attribute).Value(); value.Type() == pcommon.ValueTypeBytes {
		p.Repeated += min(value.Bytes().Len()/leastRow, processes.MaxRows+1) * processSize
	}
}

// setAside makes an attribute no part of what identifies a Profile.
func (p *Payload) setAside(attribute int) {
	if p.aside == nil {
		p.aside = make([]bool, p.pd.Dictionary().AttributeTable().Len())
	}
	p.aside[attribute] = true
}

// findUntimed reports whether a Profile says that its timestamps were dropped, and sets that attribute aside.
func (p *Payload) findUntimed(from pprofile.Profile) (untimed bool) {
	table, indices := p.pd.Dictionary().AttributeTable(), from.AttributeIndices()
	for k := range indices.Len() {
		i := int(indices.At(k))
		if a := table.At(i); a.Value().Type() == pcommon.ValueTypeBool && p.text(a.KeyStrindex()) == attrkey.TimestampsDropped {
			p.setAside(i)
			untimed = untimed || a.Value().Bool()
		}
	}
	return untimed
}

func hasTimestamps(p pprofile.Profile) bool {
	samples := p.Samples()
	for i := range samples.Len() {
		if samples.At(i).TimestampsUnixNano().Len() > 0 {
			return true
		}
	}
	return false
}

// divide divides a Profile if its time is in several slots.
func (p *Payload) divide(profile *Profile, options *Options, scopeKey int) {
	from := profile.from
	start, end := uint64(from.Time()), endOf(uint64(from.Time()), from.DurationNano())
	for _, row := range p.appendRows(nil, profile) {
		end = max(end, row.End)
	}
	d := divisionOf(start, end, uint64(options.SlotLength))
	if d == nil {
		return
	}
	const sumSize = 16
	profile.division, profile.slot = d, d.first
	p.Repeated += len(d.lengths) * (scopeSize(scopeKey) + sumSize*profile.Samples)
}

// appendRows appends the rows of a Profile: its table, or else the process of its resource, with the value 0.
func (p *Payload) appendRows(dst []processes.Row, profile *Profile) []processes.Row {
	if profile.table >= 0 {
		attribute := p.pd.Dictionary().AttributeTable().At(profile.table)
		rows, err := processes.ReadAttribute(attribute, uint64(profile.from.Time()))
		if err == nil && len(rows) > 0 { // a malformed one says nothing
			return append(dst, rows...)
		}
	}
	from := profile.from
	return append(dst, processes.Single(profile.scope.resource.process, uint64(from.Time()), from.DurationNano(), profile.snapshot))
}

// typeHash is equal for Profiles of one service, profile type and sample type.
func (p *Payload) typeHash(service, profileType string, t pprofile.ValueType) uint64 {
	p.scratch = p.scratch[:0].AppendKey(service).AppendKey(profileType).AppendKey(p.text(t.TypeStrindex())).AppendKey(p.text(t.UnitStrindex()))
	return xxhash.Sum64(p.scratch)
}

// profileKey returns the key of a Profile; content is that of its resource and scope.
func (p *Payload) profileKey(content [sha256.Size]byte, from pprofile.Profile) Key {
	id, sampleType := from.ProfileID(), from.SampleType()
	key := append(append(p.scratch[:0], content[:]...), id[:]...)
	p.scratch = key.AppendKey(p.text(sampleType.TypeStrindex())).AppendKey(p.text(sampleType.UnitStrindex()))
	sum := sha256.Sum256(p.scratch)
	return Key(sum[:])
}

// Without returns p without the Profiles for whose indices skip is true.
func (p *Payload) Without(skip []bool) *Payload {
	if !slices.Contains(skip, true) {
		return p
	}
	kept := *p
	kept.Profiles = make([]Profile, 0, len(p.Profiles))
	for i := range p.Profiles {
		if !skip[i] {
			kept.Profiles = append(kept.Profiles, p.Profiles[i])
		}
	}
	return &kept
}

// Samples returns the number of samples of all Profiles.
func (p *Payload) Samples() (n int) {
	for i := range p.Profiles {
		n += p.Profiles[i].Samples
	}
	return n
}

func (p *Payload) text(i int32) string {
	return dictionary.ValidString(p.pd.Dictionary().StringTable(), i)
}

// duplicateKey returns a key that m has twice, after repair to UTF-8.
func duplicateKey(m pcommon.Map) (string, bool) {
	keys := make([]string, 0, 16)
	for key := range m.All() {
		keys = append(keys, dictionary.ValidUTF8(key))
	}
	slices.Sort(keys)
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return keys[i], true
		}
	}
	return "", false
}

// emptySamples returns the number of samples of pd if all of them are empty, otherwise 0.
func emptySamples(pd pprofile.Profiles) (n int) {
	for profile := range sampletypes.ProfilesOf(pd) {
		for _, s := range profile.Samples().All() {
			if s.Values().Len() > 0 || s.TimestampsUnixNano().Len() > 0 {
				return 0
			}
			n++
		}
	}
	return n
}
