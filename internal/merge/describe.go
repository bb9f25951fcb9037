// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

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
	attributes, schemaURL := rp.Resource().Attributes(), dictionary.ValidUTF8(rp.SchemaUrl())
	r := incomingResource{from: rp, partition: options.partition(attributes), scopes: rp.ScopeProfiles().Len()}
	start := len(p.keys)
	p.keys = append(dictionary.AppendMapWithout(p.keys, attributes, options.DropResourceAttributes), schemaURL...)
	r.key = span{start, len(p.keys)}
	if options.Snapshots == SnapshotsLatest {
		p.keys = append(dictionary.AppendMap(p.keys, attributes), schemaURL...)
		r.original = span{r.key.end, len(p.keys)}
	}
	p.resources = append(p.resources, r)
	if options.ProfileKeys {
		p.content = dictionary.AppendMap(p.content[:0], attributes).AppendKey(rp.SchemaUrl())
	}
}

func (p *Payload) describeScope(sp pprofile.ScopeProfiles, profiles []incoming, options *Options) {
	s := incomingScope{from: sp, types: p.sampleTypes(sp), profiles: len(profiles)}
	attributes := sp.Scope().Attributes()
	start := len(p.keys)
	p.keys = dictionary.AppendMapWithout(p.keys, attributes, sampleTypeAttributes)
	for _, t := range s.types {
		p.keys = p.keys.AppendKey(t.Type).AppendKey(t.Unit)
	}
	p.keys = p.keys.AppendInt(int64(len(s.types))).AppendKey(dictionary.ValidUTF8(sp.Scope().Name())).
		AppendKey(dictionary.ValidUTF8(sp.Scope().Version())).AppendKey(dictionary.ValidUTF8(sp.SchemaUrl()))
	s.key = span{start, len(p.keys)}
	p.scopes = append(p.scopes, s)
	p.Repeated += (slotsOf(profiles) - 1) * scopeSize(s.key.end-s.key.start)

	var content [sha256.Size]byte
	if options.ProfileKeys {
		resource := len(p.content)
		p.content = dictionary.AppendMap(p.content, attributes)
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
	return dictionary.ValidString(p.pd.Dictionary().StringTable(), i)
}

// duplicateKey returns a key that m has twice, after repair to UTF-8.
func duplicateKey(m pcommon.Map) (string, bool) {
	var few [16]string
	keys := few[:0]
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
