// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
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
	// By sample of all Profiles: its identity, an index of identities, or leftOut.
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

// leftOut is in place of the identity of a sample that a window does not get.
const leftOut = -1

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
		return dictionary.Check(pd)
	}
	resolved, err := dictionary.ResolveStrings(pd)
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
		for i := range p.profiles {
			p.remap.WantProfile(p.profiles[i].from)
		}
		p.remap.WantParts()
	}
	return p.describe(options)
}

// Samples returns the number of samples of all Profiles.
func (p *Payload) Samples() (n int) {
	for i := range p.Profiles {
		n += p.Profiles[i].Samples
	}
	return n
}
