// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// defaultOptions are those of the processor's default configuration.
func defaultOptions() *Options {
	return &Options{
		Snapshots:           SnapshotsKeep,
		SnapshotSampleTypes: []string{"inuse_objects", "inuse_space", "goroutine", "goroutines", "goroutineleak", "threadcreate"},
		DropZeroSamples:     true,
	}
}

// add checks pd and adds it to w.
func add(w *Window, pd pprofile.Profiles) error {
	p, err := Check(pd, w.options)
	if err != nil {
		return err
	}
	return w.Add(p)
}

func merged(t testing.TB, options *Options, payloads ...pprofile.Profiles) pprofile.Profiles {
	t.Helper()
	w := NewWindow(options)
	for _, pd := range payloads {
		require.NoError(t, add(w, pd))
	}
	out := w.Emit("")
	profiletest.RequireConforms(t, out)
	return out
}

func partitionsOf(w *Window) []string { return slices.Sorted(maps.Keys(w.partitions)) }

func unmarshalPprof(t testing.TB, data []byte) pprofile.Profiles {
	t.Helper()
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(t, err)
	return pd
}

func TestWindowMergesCorpus(t *testing.T) {
	var all []pprofile.Profiles
	total := func(pd pprofile.Profiles) (sum int64) {
		for p := range sampletypes.ProfilesOf(pd) {
			for _, s := range p.Samples().All() {
				sum += s.Values().At(0)
			}
		}
		return sum
	}
	for _, file := range profiletest.Corpus(t) {
		pd := unmarshalPprof(t, file.Data)
		// Comparing all samples of a large one takes long: only make soak does.
		if full, _ := profiletest.Soak(t); len(file.Data) > 256<<10 && !full {
			require.Equal(t, 2*total(pd), total(merged(t, defaultOptions(), pd, pd)))
			continue
		}
		expand.RequireSameSums(t, []pprofile.Profiles{pd, pd}, merged(t, defaultOptions(), pd, pd))
		all = append(all, pd)
	}
	options := defaultOptions()
	options.Snapshots = SnapshotsSum
	all = append(all, profiletest.CorpusOTLP(t)...)
	expand.RequireSameSums(t, all, merged(t, options, all...))
}

// asIntervals gives all Profiles a duration, so that they merge.
func asIntervals(pd pprofile.Profiles) pprofile.Profiles {
	for p := range sampletypes.ProfilesOf(pd) {
		if p.DurationNano() == 0 {
			p.SetDurationNano(1_000_000_000)
		}
	}
	return pd
}

// Output does not depend on the order of payloads, nor on what is in one payload: under all options, with everything that
// Profiles may hold, such as links, several shapes, binaries at several addresses. The first payload decides the addresses of
// one program in several processes, and nothing else.
func TestAnyOrderAnySplit_P15(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 30, 20_000)) {
		r := rand.New(rand.NewPCG(seed, round))
		options := randomOptions(r)
		options.SnapshotSampleTypes = nil
		var payloads []pprofile.Profiles
		for range 5 {
			expanded := randomProfiles(r, seed+round*2+r.Uint64N(2), round, options)
			payloads = append(payloads, asIntervals(profiletest.Build(t, expanded...)))
		}
		out := func(payloads ...pprofile.Profiles) (all [][]byte, expanded []expand.Profile) {
			w := NewWindow(options)
			for _, pd := range payloads {
				require.NoError(t, add(w, pd))
			}
			for _, key := range partitionsOf(w) {
				pd := w.Emit(key)
				expanded = append(expanded, profiletest.Expand(t, pd)...)
				all = append(all, profiletest.ProtoOfCopy(t, pd))
			}
			return all, expand.Normalize(expanded, expand.Options{SameCode: true, IgnoreProfileID: true})
		}
		want, wanted := out(payloads...)
		requireSame := func(payloads ...pprofile.Profiles) {
			got, expanded := out(payloads...)
			require.Empty(t, expand.Diff(wanted, expanded), "round %d, %+v", round, options)
			require.True(t, !options.keepAddresses || slices.EqualFunc(want, got, bytes.Equal), "round %d, %+v", round, options)
		}
		for range 3 {
			r.Shuffle(len(payloads), func(i, j int) { payloads[i], payloads[j] = payloads[j], payloads[i] })
			joined := payloadtest.InOne(t, payloads[0], payloads[1])
			requireSame(payloads...)
			requireSame(append(payloads[2:5:5], joined)...)
		}
	}
}

// A merged Profile lasts as long as its sources cover; with timestamps, which must lie within it, to the last end.
func TestTimeRange_P4(t *testing.T) {
	for _, test := range []struct {
		in                     [][2]uint64
		start, covered, extent uint64
	}{
		{[][2]uint64{{100, 10}, {105, 10}}, 100, 15, 15},
		{[][2]uint64{{200, 10}, {100, 10}}, 100, 20, 110},
		{[][2]uint64{{200, 10}, {100, 10}, {205, 10}, {90, 20}, {300, 0}}, 90, 35, 210},
		{[][2]uint64{{100, 50}, {110, 10}}, 100, 50, 50},
		{[][2]uint64{{0, 10}, {100, 10}}, 100, 10, 10},
		{[][2]uint64{{0, 10}, {0, 20}}, 0, 20, 20},
		{[][2]uint64{{100, math.MaxUint64}, {50, 1}}, 50, math.MaxUint64 - 99, math.MaxUint64 - 50},
	} {
		for timestamps, want := range map[bool]uint64{false: test.covered, true: test.extent} {
			var payloads []pprofile.Profiles
			for _, r := range test.in {
				pd := payloadtest.Interval(r[0], r[1], 1)
				if timestamps {
					payloadtest.Only(t, pd).Samples().At(0).TimestampsUnixNano().Append(r[0])
				}
				payloads = append(payloads, pd)
			}
			p := payloadtest.Only(t, merged(t, defaultOptions(), payloads...))
			require.EqualValues(t, test.start, p.Time(), "%v", test.in)
			require.Equal(t, want, p.DurationNano(), "%v", test.in)
		}
	}
}

// Sums stay within int64, and values that have no room are counted (P3).
func TestSumsSaturate_P3(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 200, 20_000)) {
		r := rand.New(rand.NewPCG(seed, 9))
		options := defaultOptions()
		options.DropZeroSamples = false
		w := NewWindow(options)
		want, saturated := new(big.Int), 0
		for range 1 + r.IntN(12) {
			v := []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, 1, -1, r.Int64() - r.Int64()}[r.IntN(7)]
			switch want.Add(want, big.NewInt(v)); {
			case want.IsInt64():
			case want.Sign() > 0:
				want.SetInt64(math.MaxInt64)
				saturated++
			default:
				want.SetInt64(math.MinInt64)
				saturated++
			}
			require.NoError(t, add(w, payloadtest.Interval(1, 1, v)))
		}
		require.Equal(t, want.Int64(), payloadtest.Only(t, w.Emit("")).Samples().At(0).Values().At(0))
		require.Equal(t, saturated, w.Counts().Saturated)
	}
}

// The original payload of a Profile does not describe the sum, and is left out.
func TestOriginalPayloadIsLeftOut(t *testing.T) {
	pd := payloadtest.Interval(1, 1, 5)
	payloadtest.Only(t, pd).SetOriginalPayloadFormat("jfr")
	payloadtest.Only(t, pd).OriginalPayload().FromRaw([]byte("payload"))
	p := payloadtest.Only(t, merged(t, defaultOptions(), pd, payloadtest.Interval(1, 1, 5)))
	require.EqualValues(t, 10, p.Samples().At(0).Values().At(0))
	require.Empty(t, p.OriginalPayloadFormat())
	require.Zero(t, p.OriginalPayload().Len())
}

// Full tables are an error that leaves the window as it was.
func TestFullTables_P1(t *testing.T) {
	defer func(most int) { maxTables = most }(maxTables)
	w := NewWindow(defaultOptions())
	require.NoError(t, add(w, payloadtest.ManyStacks(10, 0)))
	maxTables = w.tables.Retained()
	require.NoError(t, add(w, payloadtest.ManyStacks(1000, 0)))
	want, size, counts := profiletest.ProtoOfCopy(t, w.Emit("")), w.Size(), w.Counts()
	require.ErrorIs(t, add(w, payloadtest.ManyStacks(1, 0)), dictionary.ErrFull)
	require.Equal(t, size, w.Size())
	require.Equal(t, counts, w.Counts())
	require.Equal(t, want, profiletest.ProtoOfCopy(t, w.Emit("")))
}

func TestWindowProfileIDs(t *testing.T) {
	a, b := payloadtest.Interval(1, 1, 5), payloadtest.Interval(2, 1, 7)
	payloadtest.Only(t, a).SetProfileID(pprofile.ProfileID{1})
	require.Equal(t, pprofile.ProfileID{1}, payloadtest.Only(t, merged(t, defaultOptions(), a)).ProfileID(), "one source keeps its id")
	both := payloadtest.Only(t, merged(t, defaultOptions(), a, b)).ProfileID()
	require.NotEqual(t, pprofile.ProfileID{1}, both)
	require.False(t, both.IsEmpty())
	require.False(t, payloadtest.Only(t, merged(t, defaultOptions(), b)).ProfileID().IsEmpty(), "one without an id gets one")
}

// The temporality of a Profile goes before its duration and type.
func TestWindowTemporality(t *testing.T) {
	for _, test := range []struct {
		temporality            string
		sampleType, periodType string
		duration               uint64
		profiles               int
	}{
		{"delta", "objects", "space", 0, 1},
		{"delta", "objects", "space", 5, 1},
		{"cumulative", "cpu", "cpu", 5, 2},
		{"instant", "cpu", "cpu", 5, 2},
		{"other", "objects", "space", 5, 1},
		{"other", "objects", "space", 0, 2},
		{"other", "cpu", "space", 0, 1},
		{"other", "wall", "space", 0, 1},
		{"other", "samples", "cpu", 0, 1},
		{"other", "samples", "wall", 0, 1},
	} {
		pd := profiletest.Build(t, expand.Profile{
			Type: test.sampleType, PeriodType: test.periodType, Duration: test.duration,
			Attributes: []expand.Attribute{{Key: attrkey.Temporality, Value: test.temporality}},
		})
		require.Equalf(t, test.profiles, merged(t, defaultOptions(), pd, pd).ProfileCount(), "%+v", test)
	}
}

// Size is about what the heap shows, whatever the window holds.
func TestSizeIsWhatTheHeapShows(t *testing.T) {
	payloads := map[string][]pprofile.Profiles{}
	for _, w := range profiletest.Workloads()[:3] {
		payloads[w.Name] = []pprofile.Profiles{unmarshalPprof(t, profiletest.Pprof(t, w.Pprof(1))), unmarshalPprof(t, profiletest.Pprof(t, w.Pprof(2)))}
	}
	for i := range 1000 {
		payloads["many services"] = append(payloads["many services"],
			payloadtest.With(payloadtest.Interval(uint64(i), 1, 1), "service.name", "service-"+string(rune('a'+i%26)), "service.instance.id", time.Duration(i).String()))
		payloads["snapshots"] = append(payloads["snapshots"], payloadtest.Snapshot("a", uint64(i), 1))
		if i < 20 {
			pd := payloadtest.ManyStacks(2000, 0)
			for _, l := range pd.Dictionary().LocationTable().All() {
				l.SetAddress(l.Address() | uint64(i)<<32)
			}
			payloads["stacks"] = append(payloads["stacks"], pd)
		}
	}
	var series []expand.Profile // of one scope, which share no samples
	for i := range 3000 {
		series = append(series, expand.Profile{Duration: 1, Period: int64(i), Samples: []*expand.Sample{{Stack: []*expand.Frame{{Address: uint64(i + 1)}}, Sum: big.NewInt(1)}}})
	}
	payloads["series"] = []pprofile.Profiles{profiletest.Build(t, series...)}
	t.Run("corpus", func(t *testing.T) {
		for _, file := range profiletest.Corpus(t) {
			if pd := unmarshalPprof(t, file.Data); pd.SampleCount() > 1000 {
				payloads[file.Name] = []pprofile.Profiles{pd}
			}
		}
		payloads["ebpf"] = profiletest.CorpusOTLP(t)
	})
	for name, all := range payloads {
		before := profiletest.Heap()
		w := NewWindow(defaultOptions())
		for _, pd := range all {
			require.NoError(t, add(w, pd))
		}
		estimate, shown := float64(w.Size()), float64(profiletest.Heap()-before)
		require.InDelta(t, 1, estimate/shown, 0.3, name)
		require.Less(t, estimate, 2200*float64(w.counts.Samples), name)
		require.NotEmpty(t, w.resources)
	}
}

// Whatever a window accepts, what it writes conforms.
func FuzzWindow(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(profiletest.Proto(f, profiletest.GenerateProfiles(profiletest.NewRand(seed))))
	}
	f.Add(profiletest.Proto(f, profiletest.OneOfEach()))
	f.Fuzz(func(t *testing.T, data []byte) {
		pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(data)
		w := NewWindow(defaultOptions())
		if err != nil || add(w, pd) != nil {
			return
		}
		profiletest.RequireConformsBytes(t, profiletest.ProtoOfCopy(t, w.Emit("")))
	})
}
