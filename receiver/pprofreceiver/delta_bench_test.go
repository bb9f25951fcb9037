// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// BenchmarkDifference takes the difference of a profile of the corpus from itself,
// in which all is read and nothing is left, against google/pprof's way: parse both,
// negate, merge. kept-B is what stays in memory until the next one.
func BenchmarkDifference(b *testing.B) {
	for _, file := range profiletest.Corpus(b) {
		if file.Name != "go-heap.pb.gz" && file.Name != "go-heap-small.pb" {
			continue
		}
		payload, err := pproftranslator.Decompress(file.Data, 64<<20)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(file.Name+"/ours", func(b *testing.B) {
			s := heapSeries()
			first, err := s.compare(payload, time.Unix(1, 0))
			if err != nil {
				b.Fatal(err)
			}
			s.last = first.next
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.compare(payload, time.Unix(2, 0)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.last.size()), "kept-B")
		})
		b.Run(file.Name+"/google", func(b *testing.B) {
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				last, err := profile.ParseUncompressed(payload)
				if err != nil {
					b.Fatal(err)
				}
				next, err := profile.ParseUncompressed(payload)
				if err != nil {
					b.Fatal(err)
				}
				last.Scale(-1)
				if _, err := profile.Merge([]*profile.Profile{next, last}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(payload)), "kept-B")
		})
	}
}
