// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"crypto/sha256"
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// incoming is a payload that has been checked, and what is to be known of it before
// it is merged.
type incoming struct {
	pd       pprofile.Profiles
	profiles []incomingProfile // over all scopes
	samples  int
	sizes    dictionary.Sizes
	repeats  []bool
	content  dictionary.Value
}

type incomingProfile struct {
	key       profileKey // zero if it is never a repeat
	partition string
	samples   int
	repeat    bool
	done      bool // it has been passed on
}

// profileKey tells Profiles apart: by profile_id, resource, scope and sample type. It
// is the beginning of a SHA-256.
type profileKey [16]byte

// intake reads payloads. It is safe for concurrent use.
type intake struct {
	settings *mergeSettings
	identify bool // repeats are to be told
	pool     sync.Pool
	// tables only make keys of attributes.
	tables sync.Pool
}

func newIntake(settings *mergeSettings, identify bool) *intake {
	return &intake{
		settings: settings, identify: identify,
		pool:   sync.Pool{New: func() any { return new(incoming) }},
		tables: sync.Pool{New: func() any { return dictionary.New(0) }},
	}
}

// read checks pd and returns it with what is to be known of it, until release.
func (t *intake) read(pd pprofile.Profiles) (*incoming, error) {
	pd, err := checked(pd)
	if err != nil {
		return nil, err
	}
	in := t.pool.Get().(*incoming)
	in.pd, in.profiles, in.samples = pd, in.profiles[:0], 0
	in.sizes = dictionary.SizesOf(pd.Dictionary())
	tables := t.tables.Get().(*dictionary.Tables)
	for _, rp := range pd.ResourceProfiles().All() {
		partition := ""
		if len(t.settings.splitBy) > 0 {
			partition = t.settings.partitionOf(rp.Resource().Attributes())
		}
		if t.identify {
			in.content = tables.AppendMap(in.content[:0], rp.Resource().Attributes()).AppendKey(rp.SchemaUrl())
		}
		resource := len(in.content)
		for _, sp := range rp.ScopeProfiles().All() {
			var scope [sha256.Size]byte
			if t.identify {
				in.content = tables.AppendMap(in.content[:resource], sp.Scope().Attributes())
				in.content = in.content.AppendKey(sp.SchemaUrl()).AppendKey(sp.Scope().Name()).AppendKey(sp.Scope().Version())
				scope = sha256.Sum256(in.content)
			}
			for _, p := range sp.Profiles().All() {
				profile := incomingProfile{partition: partition, samples: p.Samples().Len()}
				if t.identify && !p.ProfileID().IsEmpty() {
					profile.key = in.keyOf(p, scope)
				}
				in.profiles = append(in.profiles, profile)
				in.samples += profile.samples
			}
		}
	}
	t.tables.Put(tables)
	return in, nil
}

func (in *incoming) keyOf(p pprofile.Profile, scope [sha256.Size]byte) profileKey {
	id := p.ProfileID()
	strings := in.pd.Dictionary().StringTable()
	text := func(i int32) string {
		if int(i) >= strings.Len() {
			return "" // index 0 of an empty table
		}
		return strings.At(int(i))
	}
	at := len(in.content)
	in.content = append(append(in.content, scope[:]...), id[:]...)
	in.content = in.content.AppendKey(text(p.SampleType().TypeStrindex())).AppendKey(text(p.SampleType().UnitStrindex()))
	sum := sha256.Sum256(in.content[at:])
	in.content = in.content[:at]
	return profileKey(sum[:16])
}

// repeated is which Profiles are not to be merged.
func (in *incoming) repeated() []bool {
	in.repeats = in.repeats[:0]
	for i := range in.profiles {
		in.repeats = append(in.repeats, in.profiles[i].repeat)
	}
	return in.repeats
}

// release gives in back. It must not be used any more.
func (t *intake) release(in *incoming) {
	const most = 1 << 14
	if cap(in.profiles) > most || cap(in.content) > most {
		return
	}
	clear(in.profiles)
	in.pd = pprofile.NewProfiles()
	t.pool.Put(in)
}
