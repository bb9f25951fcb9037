// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gotracetranslator_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/translator/gotracetranslator"
)

func BenchmarkUnmarshal(b *testing.B) {
	data := record(b, func() { exchange(50_000) })
	pd, err := (&gotracetranslator.Unmarshaler{}).UnmarshalProfiles(data)
	require.NoError(b, err)
	intervals := len(spansOf(b, pd))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (&gotracetranslator.Unmarshaler{}).UnmarshalProfiles(data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*intervals), "ns/interval")
}
