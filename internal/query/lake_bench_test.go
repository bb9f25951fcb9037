// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/compact"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/lake"
)

// BenchmarkLake compacts the hours of the day of BenchmarkHistory without and with Parquet. BenchmarkSQL of e2e reads the Parquet files,
// which stay in the directory in OTELCOL_PROFILES_LAKE.
func BenchmarkLake(b *testing.B) {
	plain := b.TempDir()
	writeDay(b, plain)
	for _, name := range []string{"segments", "segments and Parquet"} {
		b.Run(name, func(b *testing.B) {
			directory := b.TempDir()
			var written lake.Written
			var parquet *compact.Parquet
			if name != "segments" {
				directory = cmp.Or(os.Getenv("OTELCOL_PROFILES_LAKE"), directory)
				parquet = &compact.Parquet{
					Written: func(_ string, w lake.Written) {
						written.Files, written.Bytes = written.Files+w.Files, written.Bytes+w.Bytes
						written.Samples, written.Processes = written.Samples+w.Samples, written.Processes+w.Processes
					},
					LeftOut: func(partition string, err error) { require.NoError(b, err, partition) }, Removed: func(string, int64) {},
				}
			}
			linkFiles(b, plain, directory, func(name string) string { return name })
			peak := uint64(0)
			for b.Loop() { // once
				stop := watchHeap(&peak)
				require.NoError(b, compact.New(compact.Options{
					Directory: directory, After: time.Minute, Resolutions: []time.Duration{time.Minute}, MaxMemory: 64 << 20, Parquet: parquet,
					Compacted: func(compact.Result) {}, Skipped: func(path string, err error) { require.NoError(b, err, path) },
					Damaged: func(path string) { require.Fail(b, path) }, Now: func() time.Time { return historyBegin.Add(48 * time.Hour) },
				}).Run(b.Context()))
				stop()
			}
			b.ReportMetric(float64(peak)/1e6, "peak-heap-MB")
			if parquet != nil {
				b.ReportMetric(float64(written.Bytes)/1e6, "Parquet-MB")
				b.ReportMetric(float64(written.Samples)/1e6, "Msamples")
				b.ReportMetric(float64(written.Processes)/1e3, "kprocesses")
			} else {
				b.ReportMetric(float64(sizeOf(b, directory))/1e6, "segments-MB")
			}
		})
	}
}
