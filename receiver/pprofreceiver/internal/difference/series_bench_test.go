// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// BenchmarkDifference takes the difference of a heap profile from itself, in which
// all is read and nothing is left. google/pprof parses both, negates one and merges
// them. The two take turns; kept-B is what stays in memory between scrapes.
func BenchmarkDifference(b *testing.B) {
	for _, file := range profiletest.Corpus(b) {
		payload, err := pproftranslator.Decompress(file.Data, 64<<20)
		require.NoError(b, err)
		s := heapSeries()
		first, err := s.Next(payload, time.Unix(1, 0))
		require.NoError(b, err, file.Name)
		if first.next == nil {
			continue // nothing in it counts
		}
		s.Accept(first)
		runs := []func() error{
			func() error { _, err := s.Next(payload, time.Unix(2, 0)); return err },
			func() error { return googleDifference(payload) },
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
			b.ReportMetric(float64(s.last.size()), "kept-B")
			for i, name := range []string{"ours", "google"} {
				b.ReportMetric(medians[i]/1000, name+"-µs")
				b.ReportMetric(testing.AllocsPerRun(3, func() { _ = runs[i]() }), name+"-allocs")
			}
			b.ReportMetric(medians[0]/medians[1], "ours/google")
		})
	}
}

func googleDifference(payload []byte) error {
	last, err := profile.ParseUncompressed(payload)
	if err != nil {
		return err
	}
	next, err := profile.ParseUncompressed(payload)
	if err != nil {
		return err
	}
	last.Scale(-1)
	_, err = profile.Merge([]*profile.Profile{next, last})
	return err
}
