// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// slowlyCut is cutSamples of a decoded payload.
func slowlyCut(pd pprofile.Profiles, unwanted []string, contains func(uint64) bool) {
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				name := pd.Dictionary().StringTable().At(int(p.SampleType().TypeStrindex()))
				isUnwanted := false
				for _, of := range unwanted {
					isUnwanted = isUnwanted || of == name
				}
				p.Samples().RemoveIf(func(s pprofile.Sample) bool {
					return isUnwanted || !contains(uint64(p.Time())) && s.TimestampsUnixNano().Len() == 0
				})
			}
		}
	}
}

// TestSamplesThatAreNotSelectedAreSkipped_V1: a cut message has the samples that are left of a payload when the same ones are removed, and all else.
func TestSamplesThatAreNotSelectedAreSkipped_V1(t *testing.T) {
	left, all := 0, 0
	for seed := range uint64(profiletest.Rounds(t, 200, 5000)) {
		r := profiletest.NewRand(seed)
		pd := profiletest.GenerateProfiles(r)
		message := profiletest.Proto(t, pd)
		unwanted, contains := randomCut(r)
		want := profiletest.Unmarshal(t, message)
		all += want.SampleCount()
		slowlyCut(want, unwanted, contains)
		left += want.SampleCount()
		cutSamples(message, unwanted, contains)
		got := profiletest.Unmarshal(t, message)
		require.Equal(t, want.SampleCount(), got.SampleCount(), "seed %d", seed)
		require.Emptyf(t, expand.Diff(profiletest.Expand(t, want), profiletest.Expand(t, got)), "seed %d", seed)
	}
	require.Greater(t, left, all/10)
	require.Less(t, left, all*9/10)
}

func randomCut(r *rand.Rand) (unwanted []string, contains func(uint64) bool) {
	for _, name := range []string{"cpu", "samples", "alloc_space", "no such type"} {
		if r.IntN(3) == 0 {
			unwanted = append(unwanted, name)
		}
	}
	from := 1_700_000_000_000_000_000 + r.Uint64N(100)*1_000_000_000
	to := from + r.Uint64N(100)*1_000_000_000
	return unwanted, func(t uint64) bool { return from <= t && t < to }
}

// TestOnlySamplesThatTheFilterRemovesAreSkipped_V1: with and without the entry of an index, the filter leaves the same of a record, and the
// record is as it was.
func TestOnlySamplesThatTheFilterRemovesAreSkipped_V1(t *testing.T) {
	skipped := 0
	for seed := range uint64(profiletest.Rounds(t, 200, 5000)) {
		r := profiletest.NewRand(seed)
		pd := profiletest.GenerateProfiles(r)
		entry, err := contents.Describe(pd)
		require.NoError(t, err)
		message := profiletest.Proto(t, pd)
		options := archive.Options{MaxMemory: 1 << 30}
		record := options.RecordOf(archive.Record{Encoding: archive.OTLPProto, Data: append([]byte(nil), message...)})
		sel := &Selection{}
		if r.IntN(2) == 0 {
			sel.Types = append(sel.Types, []string{"cpu", "samples", "alloc_space", "off_cpu", "cpu:cpu"}[r.IntN(5)])
		}
		if r.IntN(2) == 0 {
			sel.From = time.Unix(1_700_000_000+r.Int64N(100), 0)
			sel.To = sel.From.Add(time.Duration(r.IntN(100)) * time.Second)
		}
		read := func(entry *contents.Entry) (payloads []pprofile.Profiles, timeOnly []bool) {
			reading := &reading{timed: func(_ *archive.Record, pd pprofile.Profiles, of []bool) error {
				payloads, timeOnly = append(payloads, pd), append(timeOnly, of...)
				return nil
			}}
			require.NoError(t, (&Source{Options: options}).visit(context.Background(), record, entry, sel, reading))
			skipped += len(reading.scratch)
			return payloads, timeOnly
		}
		want, wantTimeOnly := read(nil)
		got, gotTimeOnly := read(entry)
		require.Equal(t, wantTimeOnly, gotTimeOnly, "seed %d", seed)
		require.Emptyf(t, expand.Diff(profiletest.Expand(t, want...), profiletest.Expand(t, got...)), "seed %d", seed)
		require.Equal(t, message, record.Data)
	}
	require.Positive(t, skipped)
}

// FuzzCut: whatever a message is, cutting it does not panic, and one that can be decoded still can.
func FuzzCut(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(profiletest.Proto(f, profiletest.GenerateProfiles(profiletest.NewRand(seed))), seed)
	}
	f.Fuzz(func(t *testing.T, message []byte, seed uint64) {
		unwanted, contains := randomCut(profiletest.NewRand(seed))
		want, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(message)
		cutSamples(message, unwanted, contains)
		got, cutErr := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(message)
		if err == nil {
			require.NoError(t, cutErr)
			require.Equal(t, want.ProfileCount(), got.ProfileCount())
			require.LessOrEqual(t, got.SampleCount(), want.SampleCount())
		}
	})
}
