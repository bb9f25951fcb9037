// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// ofLocations is a profile of so many locations, which are multiples of 100, in stacks of
// 100.
func ofLocations(n int) message {
	m := message(nil).bytes(profileSampleType, message(nil).varint(1, 1).varint(2, 2)).strings("", "cpu", "nanoseconds", "request")
	inner, stack := make(message, 0, 2000), make([]uint64, 100)
	for i := range n {
		m = m.bytes(profileLocation, inner.varint(1, uint64(i+1)).varint(3, uint64(0x1000+16*i)))
		stack[i%100] = uint64(i + 1)
		if i%100 == 99 {
			m = m.bytes(profileSample, inner.packed(1, stack...).packed(2, 1))
		}
	}
	return m
}

// distinct names the i-th label.
func distinct(i int) string { return fmt.Sprint("request ", i) }

// ofLabels is ofLocations with so many more samples, each with a stack and a label of its own.
func ofLabels(n int, value func(i int) string) message {
	m := ofLocations(1000)
	inner, label, stack := make(message, 0, 2000), make(message, 0, 100), make([]uint64, 21)
	for i := range n {
		stack[0] = uint64(i/900 + 1)
		for j := range 20 {
			stack[j+1] = uint64(i%900 + j + 1)
		}
		m = m.strings(value(i)).bytes(profileSample, inner.packed(1, stack...).packed(2, 1).bytes(3, label.varint(1, 3).varint(2, uint64(i+4))))
	}
	return m
}

func TestMillionLocationsAndDistinctLabelsAreFast_R8(t *testing.T) {
	fast := func(data message) pprofile.Profiles {
		start := time.Now()
		pd, err := (&Unmarshaler{}).UnmarshalProfiles(data)
		require.NoError(t, err)
		require.Less(t, time.Since(start), 30*time.Second, "on a busy machine; 2 s on an idle one")
		return pd
	}
	pd := fast(ofLocations(1_000_000))
	require.Equal(t, 1_000_001, pd.Dictionary().LocationTable().Len())
	require.Equal(t, 10_001, pd.Dictionary().StackTable().Len())

	pd = fast(ofLabels(100_000, distinct))
	require.Equal(t, 100_001, pd.Dictionary().AttributeTable().Len())
	require.Equal(t, 100_010, pd.SampleCount())

	const frames = 1_000_000
	deep := base().bytes(profileSample, message(nil).packed(2, 1).bytes(1, bytes.Repeat([]byte{1}, frames)))
	_, err := (&Unmarshaler{}).UnmarshalProfiles(deep)
	require.True(t, isLimit(err), "by default a stack may have fewer locations: %v", err)
	pd, err = (&Unmarshaler{Limits: Limits{Factor: 16}}).UnmarshalProfiles(deep)
	require.NoError(t, err)
	require.Equal(t, frames, pd.Dictionary().StackTable().At(2).LocationIndices().Len())

	const length = 1 << 20 // the default limit
	for _, more := range []int{-1, 0, 1} {
		_, err = (&Unmarshaler{}).UnmarshalProfiles(base().strings(strings.Repeat("s", length+more)))
		require.Equal(t, more > 0, isLimit(err), "%d bytes: %v", length+more, err)
	}
	profiletest.Injected(t, "1000000 locations, 1000000 frames of a stack, 100000 distinct labels, 3 strings of 1 MiB or so")
}

// BenchmarkSizes reports how long a million locations take, and what distinct labels cost against equal ones: R8 wants 2 s
// at most, and 3 times.
func BenchmarkSizes(b *testing.B) {
	for name, data := range map[string]message{
		"million": ofLocations(1_000_000), "distinct": ofLabels(100_000, distinct), "equal": ofLabels(100_000, func(int) string { return "request" }),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := (&Unmarshaler{}).UnmarshalProfiles(data)
				require.NoError(b, err)
			}
		})
	}
}
