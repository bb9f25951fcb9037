// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// ofLocations is a profile of so many locations in stacks of 100.
func ofLocations(n int) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}}
	for i := range n {
		p.Location = append(p.Location, &profile.Location{ID: uint64(i + 1), Address: uint64(0x1000 + 16*i)})
	}
	for stack := range slices.Chunk(p.Location, 100) {
		p.Sample = append(p.Sample, &profile.Sample{Location: stack, Value: []int64{1}})
	}
	return p
}

// ofLabels is a profile of so many samples, each with a stack of its own and a label.
func ofLabels(n int, value func(i int) string) *profile.Profile {
	p := ofLocations(1000)
	p.Sample = nil
	for i := range n {
		stack := append([]*profile.Location{p.Location[i/900]}, p.Location[i%900:][:20]...)
		p.Sample = append(p.Sample, &profile.Sample{
			Location: stack, Value: []int64{1},
			Label: map[string][]string{"request": {value(i)}},
		})
	}
	return p
}

func TestR8_Sizes(t *testing.T) {
	pd, err := (&Unmarshaler{}).UnmarshalProfiles(encode(t, ofLocations(1_000_000)))
	require.NoError(t, err)
	require.Equal(t, 1_000_001, pd.Dictionary().LocationTable().Len())
	require.Equal(t, 10_001, pd.Dictionary().StackTable().Len())

	pd, err = (&Unmarshaler{}).UnmarshalProfiles(encode(t, ofLabels(100_000, func(i int) string { return fmt.Sprint("request ", i) })))
	require.NoError(t, err)
	require.Equal(t, 100_001, pd.Dictionary().AttributeTable().Len())
	require.Equal(t, 100_000, pd.SampleCount())

	const frames = 1_000_000
	deep := base().bytes(profileSample, message(nil).packed(2, 1).bytes(1, bytes.Repeat([]byte{1}, frames)))
	_, err = (&Unmarshaler{}).UnmarshalProfiles(deep)
	require.True(t, isLimit(err), "by default a stack may have fewer locations: %v", err)
	_, err = (&Unmarshaler{Limits: Limits{StackDepth: frames - 1}}).UnmarshalProfiles(deep)
	require.True(t, isLimit(err), "%v", err)
	pd, err = (&Unmarshaler{Limits: Limits{StackDepth: frames}}).UnmarshalProfiles(deep)
	require.NoError(t, err)
	require.Equal(t, frames, pd.Dictionary().StackTable().At(2).LocationIndices().Len())

	const length = 1 << 20 // the default limit
	for _, more := range []int{-1, 0, 1} {
		_, err = (&Unmarshaler{}).UnmarshalProfiles(base().strings(strings.Repeat("s", length+more)))
		require.Equal(t, more > 0, isLimit(err), "%d bytes: %v", length+more, err)
	}
	profiletest.Injected(t, "1000000 locations, 1000000 frames of a stack, 100000 distinct labels, 3 strings of 1 MiB or so")
}

// BenchmarkSizes reports how long a million locations take, and what distinct labels
// cost against equal ones: R8 wants 2 s at most, and 3 times.
func BenchmarkSizes(b *testing.B) {
	median := func(data []byte) float64 {
		var times []time.Duration
		for range 5 {
			start := time.Now()
			_, err := (&Unmarshaler{}).UnmarshalProfiles(data)
			require.NoError(b, err)
			times = append(times, time.Since(start))
		}
		slices.Sort(times)
		return float64(times[len(times)/2].Microseconds())
	}
	million := median(encode(b, ofLocations(1_000_000)))
	distinct := median(encode(b, ofLabels(100_000, func(i int) string { return fmt.Sprint("request ", i) })))
	equal := median(encode(b, ofLabels(100_000, func(int) string { return "request" })))
	b.Run("one", func(b *testing.B) {
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(million/1000, "million-ms")
		b.ReportMetric(distinct/1000, "distinct-ms")
		b.ReportMetric(distinct/equal, "distinct/equal")
	})
}
