// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// canonical writes payloads anew in canonical order. It returns nil if tables reject them.
func canonical(payloads ...pprofile.Profiles) []byte {
	tables := New(0)
	var r Remap
	type sample struct{ stack, set, link int32 }
	var samples []sample
	for _, pd := range payloads {
		r.Reset(pd.Dictionary(), tables)
		for _, rp := range pd.ResourceProfiles().All() {
			for _, sp := range rp.ScopeProfiles().All() {
				for _, p := range sp.Profiles().All() {
					for _, s := range p.Samples().All() {
						samples = append(samples, sample{r.Stack(s.StackIndex()), r.AttributeSet(s.AttributeIndices(), nil), r.Link(s.LinkIndex())})
					}
				}
			}
		}
	}
	if tables.Err() != nil {
		return nil
	}
	c := NewWriter(tables)
	for _, s := range samples {
		c.UseSample(s.stack, s.set, s.link)
	}
	c.Rank()
	slices.SortFunc(samples, func(a, b sample) int {
		aStack, aSet, aLink := c.Ranks(a.stack, a.set, a.link)
		bStack, bSet, bLink := c.Ranks(b.stack, b.set, b.link)
		return cmp.Or(cmp.Compare(aStack, bStack), cmp.Compare(aSet, bSet), cmp.Compare(aLink, bLink))
	})
	out := pprofile.NewProfiles()
	p := out.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	for i, s := range samples {
		if i > 0 && s == samples[i-1] {
			continue
		}
		to := p.Samples().AppendEmpty()
		to.SetStackIndex(c.Stack(s.stack))
		to.SetLinkIndex(c.Link(s.link))
		to.AttributeIndices().FromRaw(c.AppendSet(nil, s.set))
		to.Values().Append(1)
	}
	c.Write(out.Dictionary(), discard{})
	b, _ := (&pprofile.ProtoMarshaler{}).MarshalProfiles(out)
	return b
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Sum(b []byte) []byte         { return b }
func (discard) Reset()                      {}
func (discard) Size() int                   { return 0 }
func (discard) BlockSize() int              { return 1 }

func TestCanonicalDoesNotDependOnOrder(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 12, 500)) {
		var payloads []pprofile.Profiles
		for i := range uint64(4) {
			payloads = append(payloads, profiletest.GenerateProfiles(profiletest.NewRand(seed*10+i)))
		}
		want := canonical(payloads...)
		profiletest.RequireConformsBytes(t, want)
		r := rand.New(rand.NewPCG(seed, 0))
		for range 5 {
			r.Shuffle(len(payloads), func(i, j int) { payloads[i], payloads[j] = payloads[j], payloads[i] })
			require.Equal(t, want, canonical(payloads...))
		}
	}
}

// Whatever passes Check can be written anew, and what is written conforms.
func FuzzCheckAndRemap(f *testing.F) {
	for seed := range uint64(20) {
		b := profiletest.Proto(f, profiletest.GenerateProfiles(profiletest.NewRand(seed)))
		f.Add(b)
	}
	b := profiletest.Proto(f, profiletest.OneOfEach())
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		if err != nil || Check(pd) != nil {
			return
		}
		if out := canonical(pd); out != nil {
			profiletest.RequireConformsBytes(t, out)
		}
	})
}
