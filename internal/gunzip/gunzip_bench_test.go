// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package gunzip

import (
	"bytes"
	stdgzip "compress/gzip"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// BenchmarkGunzip decompresses profiles as Go's runtime compresses them, in turns with the readers of
// klauspost/compress and of the standard library.
func BenchmarkGunzip(b *testing.B) {
	small := profiletest.Workload{Name: "small", Samples: 6, MinDepth: 5, MaxDepth: 10, Functions: 30}
	for _, workload := range append(profiletest.Workloads()[:3], small) {
		var plain bytes.Buffer
		require.NoError(b, workload.Pprof(1).WriteUncompressed(&plain))
		data := compress(b, plain.Bytes(), gzip.BestSpeed)
		b.Run("workload="+workload.Name, func(b *testing.B) {
			var klauspost gzip.Reader
			var standard stdgzip.Reader
			read := func(r interface {
				io.Reader
				Reset(r io.Reader) error
			}) {
				require.NoError(b, r.Reset(bytes.NewReader(data)))
				_, err := io.ReadFull(r, make([]byte, plain.Len()))
				require.NoError(b, err)
			}
			runs := []func(){
				func() {
					_, err := Decompress(data, 1<<30, reserveAny)
					require.NoError(b, err)
				},
				func() { read(&klauspost) },
				func() { read(&standard) },
			}
			times := make([][]time.Duration, len(runs))
			for b.Loop() {
				for i, run := range runs {
					start := time.Now()
					run()
					times[i] = append(times[i], time.Since(start))
				}
			}
			medians := make([]float64, len(runs))
			for i, t := range times {
				slices.Sort(t)
				medians[i] = float64(t[len(t)/2].Nanoseconds()) / 1000
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(plain.Len()), "plain-B")
			b.ReportMetric(float64(len(data)), "gzip-B")
			b.ReportMetric(medians[0], "ours-µs")
			b.ReportMetric(medians[1], "klauspost-µs")
			b.ReportMetric(medians[2], "std-µs")
			b.ReportMetric(medians[0]/medians[1], "ours/klauspost")
		})
	}
}
