// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
)

// importer adds payloads to windows. It first interns everything that a payload refers to,
// which may fail and is then undone; then it adds, which cannot fail.
type importer struct {
	remap    dictionary.Remap
	profiles []incoming
	// identities are the sample identities of the payload.
	identities []identity
	// By sample of all Profiles: its identity, an index of identities. A sample that is
	// skipped has the complement of that, or skipped if it is not known.
	samples []int32
	// By identity: its row in the last scope of intervals that had it, and of snapshots.
	rows     [2][]row
	scopes   map[scopeKey]numberedScope // of the ScopeProfiles that is being added
	subtract bool                       // values are subtracted

	bases    []dictionary.Base
	dropped  []bool // by source attribute: samples lose it
	indices  []int32
	singles  []int32 // by source attribute: the set of it alone plus one, 0 for unknown
	key      dictionary.Value
	original dictionary.Value
}

// importers keep their memory from payload to payload.
var importers = sync.Pool{New: func() any { return &importer{scopes: map[scopeKey]numberedScope{}} }}

// identity is a sample identity in the tables of the window.
type identity struct{ stack, set, link int32 }

const skipped = -1 << 31

// row is the row of an identity in a numberedScope.
type row struct{ scope, row int32 }

// scopeKey tells apart the scopes that the Profiles of one ScopeProfiles go into.
type scopeKey struct {
	snapshot bool
	slot     slot
}

// numberedScope is one of these scopes. The first has number 1.
type numberedScope struct {
	*scope
	number int32
}

// sameIdentity returns whether two samples of one payload have the same identity there.
func sameIdentity(a, b pprofile.Sample) bool {
	if a.StackIndex() != b.StackIndex() || a.LinkIndex() != b.LinkIndex() {
		return false
	}
	x, y := a.AttributeIndices(), b.AttributeIndices()
	return x.Len() == y.Len() && (x.Len() == 0 || x.At(0) == y.At(0) && (x.Len() == 1 || x.Equal(y)))
}

// incoming is a Profile of the payload.
type incoming struct {
	profile  pprofile.Profile
	key      profileKey // in the tables of the window
	slot     slot
	snapshot bool
	skip     bool
	first    int // its first sample, in importer.samples
}

// Add merges p, without the Profiles that p says to skip. On an error, which wraps
// ErrInvalid, w is unchanged. If it also wraps a *dictionary.OverflowError, a table of w is
// full and an empty window may have room for p. If Add panics, w is only good for its counts, which
// are without p.
func (w *Window) Add(p *Payload) error {
	payloads, returned := w.counts.Payloads, false
	defer func() {
		for _, part := range w.partitions {
			if !returned && part.last > payloads {
				part.Counts = part.before
			}
		}
	}()
	err := w.add(p, false)
	returned = true
	return err
}

// add merges or subtracts p.
func (w *Window) add(p *Payload, subtract bool) error {
	w.emitter = nil
	im := importers.Get().(*importer)
	im.subtract = subtract
	mark := w.tables.Mark()
	im.remap.Coarsening = w.options.Coarsening
	im.remap.Reset(p.pd.Dictionary(), w.tables)
	im.resetAttributes(w, p.pd.Dictionary())
	if err := im.read(w, p); err != nil {
		w.tables.Rollback(mark)
		im.release()
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	w.counts.Payloads++
	im.apply(w, p)
	im.release() // not after a panic
	return nil
}

// release gives im back without the payload. It keeps its memory if that is not too much.
func (im *importer) release() {
	const most = 1 << 20
	if cap(im.identities)*3+cap(im.samples)+(cap(im.rows[0])+cap(im.rows[1]))*2+im.remap.Len() > most {
		return
	}
	clear(im.profiles)
	clear(im.scopes)
	im.remap.Reset(pprofile.NewProfilesDictionary(), nil)
	importers.Put(im)
}

func (im *importer) resetAttributes(w *Window, d pprofile.ProfilesDictionary) {
	n := d.AttributeTable().Len()
	im.singles = slices.Grow(im.singles[:0], n)[:n]
	clear(im.singles)
	im.dropped = im.dropped[:0]
	if len(w.options.DropSampleAttributes) > 0 {
		for _, a := range d.AttributeTable().All() {
			key := ""
			if int(a.KeyStrindex()) < d.StringTable().Len() {
				key = d.StringTable().At(int(a.KeyStrindex()))
			}
			im.dropped = append(im.dropped, slices.Contains(w.options.DropSampleAttributes, key))
		}
	}
}

// read interns all that p refers to. Only the tables of w change. The error is that of the
// tables, with the Profile that caused it.
func (im *importer) read(w *Window, p *Payload) error {
	im.profiles, im.samples, im.identities = im.profiles[:0], slices.Grow(im.samples[:0], p.Samples()), im.identities[:0]
	for i, rp := range p.pd.ResourceProfiles().All() {
		for j, sp := range rp.ScopeProfiles().All() {
			// The Profile before, which usually has the same identities in the same order.
			var sibling *incoming
			for k, from := range sp.Profiles().All() {
				n := len(im.profiles)
				im.profiles = append(im.profiles, incoming{
					profile: from, first: len(im.samples), skip: p.Profiles[n].Skip,
				})
				if im.profiles[n].skip {
					continue
				}
				im.readHeader(w, &im.profiles[n])
				if isVerbatim(from) {
					im.readVerbatim(from.Samples())
				} else {
					im.readSamples(w, from.Samples(), sibling)
					sibling = &incoming{profile: from, first: im.profiles[n].first}
				}
				if err := w.tables.Err(); err != nil {
					return fmt.Errorf("resource_profiles[%d].scope_profiles[%d].profiles[%d]: %w", i, j, k, err)
				}
			}
		}
	}
	return nil
}

func (im *importer) readHeader(w *Window, to *incoming) {
	r, p := &im.remap, to.profile
	key := profileKey{
		sampleType: r.String(p.SampleType().TypeStrindex()),
		sampleUnit: r.String(p.SampleType().UnitStrindex()),
		periodType: r.String(p.PeriodType().TypeStrindex()),
		periodUnit: r.String(p.PeriodType().UnitStrindex()),
		period:     p.Period(),
		attributes: r.AttributeSet(p.AttributeIndices()),
	}
	to.snapshot = w.isSnapshot(p, key)
	if to.snapshot && w.options.Snapshots == SnapshotsKeep {
		key.time, key.duration = uint64(p.Time()), p.DurationNano()
	} else {
		to.slot = slotOf(p, uint64(w.options.SlotLength))
	}
	to.key = key
}

func (im *importer) readSamples(w *Window, samples pprofile.SampleSlice, sibling *incoming) {
	var old pprofile.SampleSlice
	known, first := 0, 0
	if sibling != nil {
		old, first = sibling.profile.Samples(), sibling.first
		known = old.Len()
	}
	for i := range samples.Len() {
		s := samples.At(i)
		n := int32(skipped)
		if i < known && sameIdentity(s, old.At(i)) {
			if n = im.samples[first+i]; n < 0 && n != skipped {
				n = ^n
			}
		}
		if w.options.DropZeroSamples && isZeroSample(s) {
			if n >= 0 {
				n = ^n
			}
			im.samples = append(im.samples, n)
			continue
		}
		if n == skipped {
			n = int32(len(im.identities))
			im.identities = append(im.identities, identity{
				im.remap.Stack(s.StackIndex()), im.set(w, s.AttributeIndices()), im.remap.Link(s.LinkIndex()),
			})
		}
		im.samples = append(im.samples, n)
	}
}

// isZeroSample reports whether the values of s are all 0 and it has no timestamps.
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

// set returns the attribute set of a sample, without the attributes that samples lose.
func (im *importer) set(w *Window, attributes pcommon.Int32Slice) int32 {
	if len(im.dropped) > 0 && attributes.Len() > 0 {
		im.indices = im.indices[:0]
		for i := range attributes.Len() {
			if a := attributes.At(i); !im.dropped[a] {
				im.indices = append(im.indices, im.remap.Attribute(a))
			}
		}
		return w.tables.AttributeSet(slices.DeleteFunc(im.indices, func(a int32) bool { return a == 0 }))
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
