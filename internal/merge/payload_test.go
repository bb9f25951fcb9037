// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// corrupt changes one index or count of pd, by chance to one that is outside its table.
func corrupt(r *rand.Rand, pd pprofile.Profiles) {
	d, i := pd.Dictionary(), r.Int32N(12)-2
	if i > 5 {
		i *= 100
	}
	below := func(n int) int { return r.IntN(max(n, 1)) }
	switch r.IntN(9) {
	case 0:
		if n := d.StackTable().Len(); n > 0 {
			d.StackTable().At(below(n)).LocationIndices().Append(i)
		}
	case 1:
		if n := d.LocationTable().Len(); n > 0 {
			d.LocationTable().At(below(n)).Lines().AppendEmpty().SetFunctionIndex(i)
		}
	case 2:
		if n := d.LocationTable().Len(); n > 0 {
			d.LocationTable().At(below(n)).SetMappingIndex(i)
		}
	case 3:
		if n := d.FunctionTable().Len(); n > 0 {
			d.FunctionTable().At(below(n)).SetFilenameStrindex(i)
		}
	case 4:
		if n := d.MappingTable().Len(); n > 0 {
			d.MappingTable().At(below(n)).AttributeIndices().Append(i)
		}
	case 5:
		if n := d.AttributeTable().Len(); n > 0 {
			d.AttributeTable().At(below(n)).SetUnitStrindex(i)
		}
	default:
		eachProfile(pd, func(p pprofile.Profile) {
			if p.Samples().Len() == 0 {
				p.PeriodType().SetUnitStrindex(i)
				return
			}
			switch s := p.Samples().At(below(p.Samples().Len())); r.IntN(4) {
			case 0:
				s.SetStackIndex(i)
			case 1:
				s.SetLinkIndex(i)
			case 2:
				s.AttributeIndices().Append(i)
			default:
				s.TimestampsUnixNano().Append(1)
			}
		})
	}
}

// What Prepare looks up in a window, it checks on the way: with the same result as dictionary.Check, and with
// the same output as without looking up.
func TestPrepareChecksWhatItLooksUp_P1(t *testing.T) {
	rejected := 0
	for seed := range uint64(profiletest.Rounds(t, 80, 20_000)) {
		r := rand.New(rand.NewPCG(seed, 5))
		options := randomOptions(r)
		options.SplitBy = nil
		w, plain := NewWindow(options), NewWindow(options)
		for range 2 { // the second finds what the first has added
			pd := profiletest.GenerateProfiles(profiletest.NewRand(seed % 7))
			require.NoError(t, add(w, pd))
			require.NoError(t, add(plain, pd))
			corrupt(r, pd)
			want := dictionary.Check(pd)
			p, err := Prepare(pd, options, w)
			if want != nil {
				require.ErrorIs(t, err, ErrInvalid)
				require.ErrorContains(t, err, want.Error())
				rejected++
				continue
			}
			require.NoError(t, err, "seed %d", seed)
			unknown, err := Prepare(pd, options, nil)
			require.NoError(t, err)
			if err := w.Add(p); err != nil { // two attributes of one key
				require.ErrorContains(t, plain.Add(unknown), err.Error())
				continue
			}
			require.NoError(t, plain.Add(unknown))
			p.Release()
		}
		require.Equal(t, marshal(t, plain.Emit("")), marshal(t, w.Emit("")), "seed %d", seed)
	}
	profiletest.Injected(t, fmt.Sprintf("%d payloads with an index or a count that is wrong", rejected))
}

// Goroutines that prepare payloads while others are added make the same output as one.
func TestPrepareInGoroutines_P15(t *testing.T) {
	const goroutines = 8
	rounds := profiletest.Rounds(t, 4, 500)
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 3))
		options := randomOptions(r)
		options.SplitBy, options.Snapshots = nil, SnapshotsSum
		var payloads []pprofile.Profiles
		for range 32 {
			payloads = append(payloads, profiletest.GenerateProfiles(profiletest.NewRand(seed*5+r.Uint64N(12))))
		}
		one, many := NewWindow(options), NewWindow(options)
		for _, pd := range payloads {
			require.NoError(t, add(one, pd))
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		for n := range goroutines {
			all.Go(func() {
				for i := n; i < len(payloads); i += goroutines {
					p, err := Prepare(payloads[i], options, many)
					if !assert.NoError(t, err) {
						return
					}
					mu.Lock()
					err = many.Add(p)
					mu.Unlock()
					p.Release()
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		require.Equal(t, marshal(t, one.Emit("")), marshal(t, many.Emit("")), "seed %d", seed)
	}
	profiletest.Injected(t, fmt.Sprintf("%d payloads in %d goroutines", 32*rounds, goroutines))
}

// A payload that took much memory does not keep it for later payloads, whichever of its parts took it.
func TestReleaseKeepsLittleMemory(t *testing.T) {
	for name, fill := range map[string]func(pd pprofile.Profiles){
		"profiles without samples": func(pd pprofile.Profiles) {
			profiles := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles()
			for i := range 100_000 {
				profiles.AppendEmpty().SetDurationNano(uint64(i))
			}
		},
		"scopes": func(pd pprofile.Profiles) {
			scopes := pd.ResourceProfiles().AppendEmpty().ScopeProfiles()
			for range 100_000 {
				scopes.AppendEmpty()
			}
		},
		"resources": func(pd pprofile.Profiles) {
			for range 100_000 {
				pd.ResourceProfiles().AppendEmpty()
			}
		},
		"an attribute of a resource": func(pd pprofile.Profiles) {
			pd.ResourceProfiles().AppendEmpty().Resource().Attributes().PutStr("k", string(make([]byte, 6<<20)))
		},
		"lines of a location": func(pd pprofile.Profiles) {
			lines := pd.Dictionary().LocationTable().AppendEmpty().Lines()
			for range 300_000 {
				lines.AppendEmpty()
			}
		},
		"listed sample types": func(pd pprofile.Profiles) {
			pd.Dictionary().StringTable().Append("")
			scopes := pd.ResourceProfiles().AppendEmpty().ScopeProfiles()
			for range 200 {
				sp := scopes.AppendEmpty()
				sp.Profiles().AppendEmpty()
				sp.Scope().Attributes().PutEmptySlice(sampletypes.OrderAttribute).AppendEmpty().SetInt(0)
				list := sp.Scope().Attributes().PutEmptySlice(sampletypes.ListAttribute)
				list.AppendEmpty().SetStr("/") // that of the Profile
				for i := range 1000 {
					list.AppendEmpty().SetStr(fmt.Sprint("/", i))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := &Options{SlotLength: 1, ProfileKeys: true}
			w := NewWindow(options)
			small := pprofile.NewProfiles()
			small.Dictionary().StringTable().FromRaw([]string{"", "cpu"})
			small.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().SampleType().SetTypeStrindex(1)
			require.NoError(t, add(w, small))
			pd := pprofile.NewProfiles()
			fill(pd)
			p, err := Prepare(pd, options, w)
			require.NoError(t, err)
			require.NoError(t, w.Add(p))
			p.Release()
			later := payloads.Get().(*Payload)
			defer payloads.Put(later)
			require.NotSame(t, p, later)
		})
	}
}
