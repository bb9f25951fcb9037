// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// BenchmarkUnmarshal compares, on each file of the corpus, the translation with
// google/pprof's parse of the same bytes and with pdata's own unmarshal of the
// same result.
func BenchmarkUnmarshal(b *testing.B) {
	for _, file := range profiletest.Corpus(b) {
		data, err := Decompress(file.Data, 1<<30)
		require.NoError(b, err)
		var u Unmarshaler
		pd, err := u.UnmarshalProfiles(data)
		require.NoError(b, err)
		otlp, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(b, err)

		b.Run(file.Name+"/ours", func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = u.UnmarshalProfiles(data)
			}
		})
		b.Run(file.Name+"/pdata", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(otlp)
			}
		})
		b.Run(file.Name+"/google", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = profile.ParseUncompressed(data)
			}
		})
	}
}
