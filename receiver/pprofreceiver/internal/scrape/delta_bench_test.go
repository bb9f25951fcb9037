// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// BenchmarkDelta ingests a heap profile whose baseline is itself: both are decompressed
// and translated, and nothing is left of the cumulative types. google/pprof parses both,
// negates one and merges them. The two take turns; kept-B is the baseline.
func BenchmarkDelta(b *testing.B) {
	for _, file := range profiletest.Corpus(b) {
		payload, err := pproftranslator.Decompress(file.Data, 64<<20)
		require.NoError(b, err)
		s := newSeries(b, "heap", nil)
		if s.try(file.Data, time.Unix(1, 0)) != nil || s.scraper.jobs[0].baseline == nil {
			continue // nothing in it is cumulative
		}
		runs := []func() error{
			func() error { return s.try(file.Data, time.Unix(2, 0)) },
			func() error { return googleDelta(file.Data) },
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
			var medians [2]float64
			for i, t := range times {
				slices.Sort(t)
				medians[i] = float64(t[len(t)/2].Nanoseconds())
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(payload)), "pprof-B")
			b.ReportMetric(float64(len(file.Data)), "kept-B")
			for i, name := range []string{"ours", "google"} {
				b.ReportMetric(medians[i]/1000, name+"-µs")
				b.ReportMetric(testing.AllocsPerRun(3, func() { _ = runs[i]() }), name+"-allocs")
			}
			b.ReportMetric(medians[0]/medians[1], "ours/google")
		})
	}
}

func googleDelta(data []byte) error {
	last, err := profile.ParseData(data)
	if err != nil {
		return err
	}
	next, err := profile.ParseData(data)
	if err != nil {
		return err
	}
	last.Scale(-1)
	_, err = profile.Merge([]*profile.Profile{next, last})
	return err
}
