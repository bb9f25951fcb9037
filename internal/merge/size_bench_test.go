// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// benchmarked is what one row of a table is about: one profile, or several that go
// into one window.
type benchmarked struct {
	name     string
	messages [][]byte // pprof, not compressed
}

var workloads = sync.OnceValue(func() (all []benchmarked) {
	for _, w := range profiletest.Workloads() {
		all = append(all, benchmarked{w.Name, [][]byte{encodePprof(w.Pprof(1))}})
	}
	return all
})

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
	return append(all, workloads()...)
}

// small are generated profiles of a few samples.
func small() (all []benchmarked) {
	for _, samples := range []int{5, 20, 100} {
		w := profiletest.Workload{Name: fmt.Sprint(samples, " samples"), Samples: samples, MinDepth: 5, MaxDepth: 25, Functions: 3 * samples}
		all = append(all, benchmarked{w.Name, [][]byte{encodePprof(w.Pprof(1))}})
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

func encodePprof(p *profile.Profile) []byte {
	var buf bytes.Buffer
	if err := p.WriteUncompressed(&buf); err != nil {
		panic(err) // a buffer takes it all
	}
	return buf.Bytes()
}

func gzipSize(tb testing.TB, data []byte) int {
	tb.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, err := z.Write(data)
	require.NoError(tb, err)
	require.NoError(tb, z.Close())
	return buf.Len()
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

// heap returns what lives on the heap.
func heap() (size, objects float64) {
	for range 3 { // the first two empty the pools
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc), float64(stats.HeapObjects)
}

// form is a way to hold profiles and to write them.
type form struct {
	name      string
	parse     func(messages [][]byte) any
	write     func(held any) [][]byte
	labelSets func(written []byte) int
}

func forms(b *testing.B) []form {
	return []form{{
		name: "pprof",
		parse: func(messages [][]byte) any {
			var held []*profile.Profile
			for _, data := range messages {
				p, err := profile.ParseUncompressed(data)
				require.NoError(b, err)
				held = append(held, p)
			}
			return held
		},
		write: func(held any) (written [][]byte) {
			for _, p := range held.([]*profile.Profile) {
				written = append(written, encodePprof(p))
			}
			return written
		},
		labelSets: func(written []byte) int {
			p, err := profile.ParseUncompressed(written)
			require.NoError(b, err)
			sets := map[string]bool{}
			for _, s := range p.Sample {
				sets[fmt.Sprint(s.Label, s.NumLabel, s.NumUnit)] = true
			}
			return len(sets)
		},
	}, {
		name: "translated",
		parse: func(messages [][]byte) any {
			var held []pprofile.Profiles
			for _, data := range messages {
				held = append(held, unmarshalPprof(b, data))
			}
			return held
		},
		write: func(held any) (written [][]byte) {
			for _, pd := range held.([]pprofile.Profiles) {
				written = append(written, marshalOnce(b, pd))
			}
			return written
		},
		labelSets: func(written []byte) int { return labelSets(b, written) },
	}, {
		name: "canonical",
		parse: func(messages [][]byte) any {
			w := NewWindow(defaultOptions())
			for _, data := range messages {
				require.NoError(b, add(w, unmarshalPprof(b, data)))
			}
			return w
		},
		write:     func(held any) [][]byte { return [][]byte{marshalOnce(b, held.(*Window).Emit(""))} },
		labelSets: func(written []byte) int { return labelSets(b, written) },
	}}
}

// marshalOnce marshals pd and leaves it unfit for more.
func marshalOnce(b *testing.B, pd pprofile.Profiles) []byte {
	data := profiletest.Proto(b, pd)
	return data
}

// labelSets counts the different sets of attributes and link of the samples.
func labelSets(b *testing.B, written []byte) int {
	pd := profiletest.Unmarshal(b, written)
	sets := map[string]bool{}
	for p := range sampletypes.ProfilesOf(pd) {
		for _, s := range p.Samples().All() {
			sets[fmt.Sprint(slices.Sorted(slices.Values(s.AttributeIndices().AsRaw())), s.LinkIndex())] = true
		}
	}
	return len(sets)
}

// BenchmarkSize has the columns of the benchmark of the data model itself, and the
// ratios that count.
func BenchmarkSize(b *testing.B) {
	encoder, err := zstd.NewWriter(nil)
	require.NoError(b, err)
	for _, of := range benchmarks(b) {
		var file, pprofGzip, pprofZstd float64
		for _, data := range of.messages {
			file += float64(gzipSize(b, data))
		}
		for _, f := range forms(b) {
			_, before := heap()
			held := f.parse(of.messages)
			_, after := heap()
			runtime.KeepAlive(held)

			var start, end runtime.MemStats
			runtime.ReadMemStats(&start)
			written := f.write(f.parse(of.messages))
			runtime.ReadMemStats(&end)

			var plain, zipped, zstded, sets float64
			for _, data := range written {
				plain += float64(len(data))
				zipped += float64(gzipSize(b, data))
				zstded += float64(len(encoder.EncodeAll(data, nil)))
				sets += float64(f.labelSets(data))
			}
			if f.name == "pprof" {
				pprofGzip, pprofZstd = zipped, zstded
			}
			report(b, "profile="+of.name+"/form="+f.name,
				"plain-B", plain, "gzip-B", zipped, "zstd-B", zstded,
				"gz/pprof", zipped/pprofGzip, "gz/file", zipped/file, "zstd/pprof", zstded/pprofZstd,
				"retained-objects", after-before, "label-sets", sets,
				"allocated-B", float64(end.TotalAlloc-start.TotalAlloc), "allocs", float64(end.Mallocs-start.Mallocs))
		}
	}
}

// BenchmarkRetained compares what a window holds on to with what it writes.
func BenchmarkRetained(b *testing.B) {
	for _, of := range append(benchmarks(b), small()...) {
		var payloads []pprofile.Profiles
		for _, data := range of.messages {
			payloads = append(payloads, unmarshalPprof(b, data))
		}
		sizeBefore, objectsBefore := heap()
		w := NewWindow(defaultOptions())
		addAll(b, w, payloads...)
		size, objects := heap()
		size -= sizeBefore
		runtime.KeepAlive(payloads)
		otlp, estimate := float64(len(marshalOnce(b, w.Emit("")))), float64(w.Size())
		report(b, "profile="+of.name,
			"otlp-B", otlp, "estimate-B", estimate, "heap-B", size, "heap-objects", objects-objectsBefore,
			"heap/otlp", size/otlp, "estimate/heap", estimate/size)
	}
}

func addAll(b *testing.B, w *Window, payloads ...pprofile.Profiles) {
	for _, pd := range payloads {
		require.NoError(b, add(w, pd))
	}
}
