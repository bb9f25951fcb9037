// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary/stringref"
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
	pd       pprofile.Profiles // references are resolved; it is only read
}

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

// Prepare checks pd and describes its Profiles. It only reads pd, which must not change
// while the payload is in use.
func Prepare(pd pprofile.Profiles, options *Options) (*Payload, error) {
	if err := dictionary.Check(pd); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	pd, err := stringref.Resolve(pd)
	if err == nil {
		err = checkKeys(pd)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	p := &Payload{pd: pd}
	p.describe(options)
	return p, nil
}

// Samples returns the number of samples of all Profiles.
func (p *Payload) Samples() (n int) {
	for i := range p.Profiles {
		n += p.Profiles[i].Samples
	}
	return n
}

func (p *Payload) describe(options *Options) {
	p.Profiles = make([]Profile, 0, p.pd.ProfileCount())
	var content dictionary.Value // what of a Profile the key is a hash of
	for _, rp := range p.pd.ResourceProfiles().All() {
		partition := options.partition(rp.Resource().Attributes())
		if options.ProfileKeys {
			content = dictionary.AppendMap(content[:0], rp.Resource().Attributes()).AppendKey(rp.SchemaUrl())
		}
		resource := len(content)
		for _, sp := range rp.ScopeProfiles().All() {
			var scope [sha256.Size]byte
			if options.ProfileKeys {
				content = dictionary.AppendMap(content[:resource], sp.Scope().Attributes())
				content = content.AppendKey(sp.SchemaUrl()).AppendKey(sp.Scope().Name()).AppendKey(sp.Scope().Version())
				scope = sha256.Sum256(content)
			}
			if options.SlotLength > 0 {
				p.Repeated += repeated(sp, uint64(options.SlotLength))
			}
			for _, profile := range sp.Profiles().All() {
				to := Profile{Partition: partition, Samples: profile.Samples().Len()}
				if options.ProfileKeys && !profile.ProfileID().IsEmpty() {
					to.Key = p.key(scope, profile)
				}
				p.Profiles = append(p.Profiles, to)
			}
		}
	}
}

// repeated is Payload.Repeated of one scope.
func repeated(sp pprofile.ScopeProfiles, slotLength uint64) int {
	var last slot
	var slots map[slot]bool
	for i, profile := range sp.Profiles().All() {
		switch s := slotOf(profile, slotLength); {
		case i == 0:
			last = s
		case s != last:
			if slots == nil {
				slots = map[slot]bool{last: true}
			}
			slots[s], last = true, s
		}
	}
	if slots == nil {
		return 0
	}
	return (len(slots) - 1) * scopeSize(dictionary.AppendMap(nil, sp.Scope().Attributes()))
}

func (p *Payload) key(scope [sha256.Size]byte, profile pprofile.Profile) Key {
	id, sampleType := profile.ProfileID(), profile.SampleType()
	content := append(dictionary.Value(scope[:]), id[:]...)
	content = content.AppendKey(p.text(sampleType.TypeStrindex())).AppendKey(p.text(sampleType.UnitStrindex()))
	sum := sha256.Sum256(content)
	return Key(sum[:16])
}

func (p *Payload) text(i int32) string {
	return dictionary.Text(p.pd.Dictionary().StringTable(), i)
}

// checkKeys rejects resources and scopes with two attributes of one key: readers would
// not agree on which of them counts.
func checkKeys(pd pprofile.Profiles) error {
	for i, rp := range pd.ResourceProfiles().All() {
		if key, ok := duplicateKey(rp.Resource().Attributes()); ok {
			return fmt.Errorf("resource_profiles[%d].resource has two attributes with the key %q; keys must be unique", i, key)
		}
		for j, sp := range rp.ScopeProfiles().All() {
			if key, ok := duplicateKey(sp.Scope().Attributes()); ok {
				return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].scope has two attributes with the key %q; keys must be unique", i, j, key)
			}
		}
	}
	return nil
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
