// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// thereAndBack translates a pprof message to OTLP, calls change on that, and
// translates it back. want is what google/pprof reads of the message, got what it
// reads of what came back: one pprof, if it has a sample type.
func thereAndBack(t *testing.T, message []byte, change func(pprofile.Profiles)) (want *profile.Profile, got []*profile.Profile) {
	t.Helper()
	want, err := profile.ParseData(message)
	require.NoError(t, err)
	pd, err := (&Unmarshaler{}).UnmarshalProfiles(message)
	require.NoError(t, err)
	change(pd)
	pd.MarkReadOnly()
	got, err = pprofsOf(Marshaler{}, pd)
	require.NoError(t, err)
	again, err := pprofsOf(Marshaler{}, pd)
	require.NoError(t, err)
	require.Len(t, again, len(got))
	for i, p := range got {
		require.NoError(t, p.CheckValid())
		written := profiletest.Pprof(t, p)
		require.True(t, bytes.Equal(written, profiletest.Pprof(t, again[i])), "the same profiles make the same bytes")
		got[i], err = profile.ParseUncompressed(written)
		require.NoError(t, err)
		require.NoError(t, got[i].CheckValid())
	}
	require.LessOrEqual(t, len(got), 1)
	if len(want.SampleType) > 0 {
		require.Len(t, got, 1)
	}
	return want, got
}

func unchanged(pprofile.Profiles) {}

// requireEqualPprofs compares all that samples reach, and the header. got is one pprof, if want has a sample type.
func requireEqualPprofs(t *testing.T, want *profile.Profile, got []*profile.Profile, o expand.Options) {
	t.Helper()
	var expanded []expand.Profile
	for _, p := range got {
		expanded = append(expanded, expand.Pprof(p)...)
		require.Equal(t, conformance.Repaired(want.DefaultSampleType), p.DefaultSampleType)
		requireMainFirst(t, want, p)
		require.Len(t, p.SampleType, len(want.SampleType))
		for i, st := range want.SampleType {
			require.Equal(t, conformance.Repaired(st.Type+"/"+st.Unit), p.SampleType[i].Type+"/"+p.SampleType[i].Unit)
		}
	}
	require.Empty(t, expand.Diff(expand.Normalize(expand.Pprof(want), o), expand.Normalize(expanded, o)))
}

var library = regexp.MustCompile(`([.]so$|[.]so[._][0-9]+)`)

// requireMainFirst: what pprof takes for the main binary is the first mapping, if
// a sample reaches it.
func requireMainFirst(t *testing.T, want, got *profile.Profile) {
	t.Helper()
	for _, m := range want.Mapping {
		file := strings.TrimSpace(strings.ReplaceAll(m.File, "(deleted)", ""))
		if file == "" || file[0] == '[' || library.MatchString(file) {
			continue
		}
		for _, kept := range got.Mapping {
			if kept.File == m.File {
				require.Equal(t, path.Base(file), path.Base(strings.TrimSpace(strings.ReplaceAll(got.Mapping[0].File, "(deleted)", ""))))
			}
		}
		return
	}
}

// Generated profiles use every field. A decoder is used for many, also at the same time.
func TestProfilesSurviveTheRoundTrip_R6(t *testing.T) {
	samples := 0
	rounds := uint64(profiletest.Rounds(t, 200, 10_000))
	for seed := range rounds {
		p := profiletest.GeneratePprof(profiletest.NewRand(seed))
		samples += len(p.Sample)
		data := profiletest.Pprof(t, p)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			requireAsOracle(t, data)
			requireRoundTrips(t, data)
		})
	}
	profiletest.Injected(t, fmt.Sprintf("%d profiles with labels of every kind, of %d samples", rounds, samples))
}

// requireRoundTrips translates a message there and back. What a processor may do in between must not matter: other order of samples, in
// each Profile another, and no sample where the value is 0.
func requireRoundTrips(t *testing.T, message []byte) {
	t.Helper()
	want, got := thereAndBack(t, message, unchanged)
	requireEqualPprofs(t, want, got, expand.Options{})
	r := profiletest.NewRand(uint64(len(message)))
	want, got = thereAndBack(t, message, func(pd pprofile.Profiles) { rearrange(r, pd) })
	requireEqualPprofs(t, want, got, expand.Options{IgnoreZeroSamples: true, Merge: true})
}

func rearrange(r *rand.Rand, pd pprofile.Profiles) {
	for p := range sampletypes.ProfilesOf(pd) {
		p.Samples().RemoveIf(func(s pprofile.Sample) bool {
			return s.TimestampsUnixNano().Len() == 0 && s.Values().At(0) == 0
		})
		shuffled := pprofile.NewSampleSlice()
		for _, i := range r.Perm(p.Samples().Len()) {
			p.Samples().At(i).CopyTo(shuffled.AppendEmpty())
		}
		shuffled.CopyTo(p.Samples())
	}
}

func TestRoundTripRepairsInvalidUTF8_R9(t *testing.T) {
	invalid := 0
	for seed := range uint64(profiletest.Rounds(t, 150, 10_000)) {
		r := profiletest.NewRand(seed)
		p := profiletest.GeneratePprof(r)
		profiletest.BreakUTF8(r, p)
		requireAsOracle(t, profiletest.Pprof(t, p)) // protobuf-go reads it
		pd, report, err := (&Unmarshaler{}).UnmarshalReport(profiletest.Pprof(t, p))
		require.NoError(t, err, "seed %d", seed)
		invalid += report.InvalidStrings
		text := profiletest.JSON(t, pd)
		require.True(t, utf8.Valid(text) && json.Valid(text), "seed %d", seed)
		got, err := pprofsOf(Marshaler{}, pd)
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, totalsOf(expandPprofs(t, p)), totalsOf(expandPprofs(t, got...)), "seed %d", seed)
	}
	profiletest.Injected(t, fmt.Sprintf("%d invalid strings", invalid))
}

func TestCorpusSurvivesTheRoundTrip(t *testing.T) {
	for _, f := range profiletest.Corpus(t) {
		data := fewerSamples(t, f.Data)
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			requireAsOracle(t, data)
			requireRoundTrips(t, data)
		})
	}
}

func TestGeneratedOTLPKeepsItsSums(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 20, 1000)) {
		pd := profiletest.GenerateProfiles(profiletest.NewRand(seed))
		t.Run(fmt.Sprint(seed), func(t *testing.T) { requireSums(t, pd) })
	}
}

func TestEBPFCorpusKeepsItsSums(t *testing.T) {
	for _, pd := range profiletest.CorpusOTLP(t) {
		requireSums(t, pd)
	}
}

// requireSums holds the sums by {type, unit} of the pprofs of pd against those of
// pd itself, and sends the pprofs there and back once more.
func requireSums(t *testing.T, pd pprofile.Profiles) {
	t.Helper()
	pd.MarkReadOnly()
	converted, err := pprofsOf(Marshaler{}, pd)
	require.NoError(t, err)
	require.Equal(t, totalsOf(profiletest.Expand(t, pd)), totalsOf(expandPprofs(t, converted...)))
	for _, p := range converted {
		want, got := thereAndBack(t, profiletest.Pprof(t, p), unchanged)
		requireEqualPprofs(t, want, got, expand.Options{})
	}
}

// totalsOf returns the sums of all values by type and unit, as text.
func totalsOf(profiles []expand.Profile) string {
	all := map[string]*big.Int{}
	for _, p := range profiles {
		key := conformance.Repaired(p.Type + "/" + p.Unit)
		sum := cmp.Or(all[key], new(big.Int))
		for _, s := range p.Samples {
			sum.Add(sum, s.Sum)
		}
		all[key] = sum
	}
	return fmt.Sprint(all)
}

// expandPprofs writes out valid pprofs.
func expandPprofs(t *testing.T, pprofs ...*profile.Profile) (all []expand.Profile) {
	t.Helper()
	for _, p := range pprofs {
		require.NoError(t, p.CheckValid())
		all = append(all, expand.Pprof(p)...)
	}
	return all
}
