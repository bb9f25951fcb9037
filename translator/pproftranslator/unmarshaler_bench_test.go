// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pproftranslator

import (
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// BenchmarkUnmarshal compares, on each file of the corpus, the translation with
// pdata's own unmarshal of the same result and with google/pprof's parse of the
// same bytes. The three take turns, so that what else the machine does meets all
// alike, and the medians are compared.
func BenchmarkUnmarshal(b *testing.B) {
	for _, file := range profiletest.Corpus(b) {
		data, err := Decompress(file.Data, 1<<30)
		require.NoError(b, err)
		var u Unmarshaler
		pd, err := u.UnmarshalProfiles(data)
		require.NoError(b, err)
		otlp := profiletest.Proto(b, pd)

		runs := []func() error{
			func() error { _, err := u.UnmarshalProfiles(data); return err },
			func() error { _, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(otlp); return err },
			func() error { _, err := profile.ParseUncompressed(data); return err },
		}
		b.Run(file.Name, func(b *testing.B) {
			times := make([][]time.Duration, len(runs))
			for b.Loop() {
				for i, run := range runs {
					start := time.Now()
					require.NoError(b, run())
					times[i] = append(times[i], time.Since(start))
				}
			}
			var medians [3]float64
			for i, t := range times {
				slices.Sort(t)
				medians[i] = float64(t[len(t)/2].Nanoseconds())
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(data)), "pprof-B")
			for i, name := range []string{"ours", "pdata", "google"} {
				b.ReportMetric(medians[i]/1000, name+"-µs")
				b.ReportMetric(testing.AllocsPerRun(3, func() { _ = runs[i]() }), name+"-allocs")
			}
			b.ReportMetric(medians[0]/medians[1], "ours/pdata")
			b.ReportMetric(medians[2]/medians[1], "google/pdata")
		})
	}
}
