// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// benchmarked is what one row of a table is about: one profile, or several that go
// into one window.
type benchmarked struct {
	name     string
	messages [][]byte // pprof, not compressed
}

// benchmarks are the profiles of the corpus, its series in one, and the workloads.
func benchmarks(b *testing.B) (all []benchmarked) {
	series := benchmarked{name: "go-heap-series, ten in one"}
	b.Run("corpus", func(b *testing.B) {
		for _, file := range profiletest.Corpus(b) {
			data := gunzip(b, file.Data)
			all = append(all, benchmarked{file.Name, [][]byte{data}})
			if strings.HasPrefix(file.Name, "go-heap-series/") {
				series.messages = append(series.messages, data)
			}
		}
		b.SkipNow() // it is no benchmark
	})
	if len(all) == 0 {
		fmt.Println("note: no corpus of real profiles here, generated ones only")
	} else {
		all = append(all, series)
	}
	for _, w := range profiletest.Workloads() {
		all = append(all, benchmarked{w.Name, [][]byte{profiletest.Pprof(b, w.Pprof(1))}})
	}
	return all
}

// small are generated profiles of a few samples.
func small(b *testing.B) (all []benchmarked) {
	for _, samples := range []int{5, 20, 100} {
		w := profiletest.Workload{Name: fmt.Sprint(samples, " samples"), Samples: samples, MinDepth: 5, MaxDepth: 25, Functions: 3 * samples}
		all = append(all, benchmarked{w.Name, [][]byte{profiletest.Pprof(b, w.Pprof(1))}})
	}
	return all
}

// report prints a row. The metrics are pairs of a name and a float64.
func report(b *testing.B, row string, metrics ...any) {
	b.Run(row, func(b *testing.B) {
		b.ReportMetric(0, "ns/op") // which hides it
		for i := 0; i < len(metrics); i += 2 {
			b.ReportMetric(metrics[i+1].(float64), metrics[i].(string))
		}
	})
}

func gunzip(tb testing.TB, data []byte) []byte {
	tb.Helper()
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(tb, err)
	data, err = io.ReadAll(z)
	require.NoError(tb, err)
	return data
}

// BenchmarkSize compares what a window writes with the pprofs, both gzipped, and with their files.
func BenchmarkSize(b *testing.B) {
	for _, of := range benchmarks(b) {
		w := NewWindow(defaultOptions())
		var files, pprofs float64
		for _, data := range of.messages {
			files += float64(len(profiletest.Gzip(b, data)))
			p, err := profile.ParseUncompressed(data)
			require.NoError(b, err)
			pprofs += float64(len(profiletest.Gzip(b, profiletest.Pprof(b, p))))
			require.NoError(b, add(w, unmarshalPprof(b, data)))
		}
		plain := profiletest.Proto(b, w.Emit(""))
		zipped := float64(len(profiletest.Gzip(b, plain)))
		report(b, "profile="+of.name,
			"plain-B", float64(len(plain)), "gzip-B", zipped, "gz/pprof", zipped/pprofs, "gz/file", zipped/files)
	}
}
