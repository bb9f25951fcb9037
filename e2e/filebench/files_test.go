// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filebench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// started is a running exporter with its directory.
type started struct {
	xexporter.Profiles
	directory string
}

// start starts an exporter with these keys and a new directory.
func start(tb testing.TB, ours bool, keys map[string]any) started {
	tb.Helper()
	directory := tb.TempDir()
	factory := fileexporter.NewFactory().(xexporter.Factory)
	keys["path"] = filepath.Join(directory, "file")
	if ours {
		factory = profilesfileexporter.NewFactory().(xexporter.Factory)
		delete(keys, "path")
		keys["directory"] = directory
	}
	config := factory.CreateDefaultConfig()
	require.NoError(tb, confmap.NewFromStringMap(keys).Unmarshal(config))
	require.NoError(tb, confmap.Validate(config))
	e, err := factory.CreateProfiles(context.Background(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(tb, err)
	require.NoError(tb, e.Start(context.Background(), componenttest.NewNopHost()))
	return started{e, directory}
}

var _ component.Component = started{}

// withoutIndexes leaves out what contrib's exporter does not write.
func withoutIndexes(entries []os.DirEntry) []os.DirEntry {
	return slices.DeleteFunc(entries, func(entry os.DirEntry) bool { return strings.HasSuffix(entry.Name(), ".index") })
}

// size returns the bytes of the files in the directory after a shutdown.
func (s started) size(tb testing.TB) (bytes int64) {
	require.NoError(tb, s.Shutdown(context.Background()))
	entries, err := os.ReadDir(s.directory)
	require.NoError(tb, err)
	for _, entry := range withoutIndexes(entries) {
		info, err := entry.Info()
		require.NoError(tb, err)
		bytes += info.Size()
	}
	return bytes
}

// TestSameBytes checks that uncompressed, length-prefixed files are byte-identical to contrib's.
func TestSameBytes(t *testing.T) {
	for format, framing := range map[string]map[string]any{
		"proto": {"format": "proto", "compression": "none"},
		"json":  {"format": "json", "compression": "none"},
	} {
		t.Run(format, func(t *testing.T) {
			ours := start(t, true, framing)
			theirs := start(t, false, map[string]any{"format": format})
			random := profiletest.NewRand(1)
			for range 50 {
				pd := profiletest.GenerateProfiles(random)
				pd.MarkReadOnly()
				for _, e := range []started{ours, theirs} {
					require.NoError(t, e.ConsumeProfiles(t.Context(), pd))
				}
			}
			assert.Equal(t, theirs.size(t), ours.size(t), "the files have different sizes")
			assert.True(t, bytes.Equal(onlyFile(t, ours.directory), onlyFile(t, theirs.directory)), "the files have different bytes")
		})
	}
}

func onlyFile(t *testing.T, directory string) []byte {
	entries, err := os.ReadDir(directory)
	entries = withoutIndexes(entries)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d files in %s: %v", len(entries), directory, err)
	}
	data, err := os.ReadFile(filepath.Join(directory, entries[0].Name()))
	require.NoError(t, err)
	return data
}

// payload returns the payload that the benchmarks write.
type payload struct {
	name string
	pd   pprofile.Profiles
}

func payloads(b *testing.B) (all []payload) {
	for _, size := range []int{12 << 10, 100 << 10, 512 << 10} {
		pd := pprofile.NewProfiles()
		random := profiletest.NewRand(1)
		for (&pprofile.ProtoMarshaler{}).ProfilesSize(pd) < size {
			require.NoError(b, profiletest.GenerateProfiles(random).MergeTo(pd))
		}
		all = append(all, payload{fmt.Sprintf("generated %d KiB", size>>10), pd})
	}
	for _, workload := range profiletest.Workloads()[:1] {
		encoded := profiletest.Pprof(b, workload.Pprof(1))
		pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(encoded)
		require.NoError(b, err)
		all = append(all, payload{workload.Name, pd})
	}
	largest, size := pprofile.NewProfiles(), 0
	for _, pd := range profiletest.CorpusOTLP(b) {
		if n := (&pprofile.ProtoMarshaler{}).ProfilesSize(pd); n > size {
			largest, size = pd, n
		}
	}
	if size > 0 {
		all = append(all, payload{"largest of the corpus", largest})
	}
	return all
}

// BenchmarkWrite interleaves pdata's marshal, our exporter and contrib's, without syncing. Each gets a copy of the payload:
// marshalling changes one. Contrib's exporter responds before it writes: it buffers records in memory.
func BenchmarkWrite(b *testing.B) {
	for _, payload := range payloads(b) {
		b.Run("records="+payload.name, func(b *testing.B) {
			record := profiletest.Proto(b, copyOf(payload.pd))
			large := map[string]any{"max_size": "100GiB", "max_age": "1h"}
			runs := []func(pd pprofile.Profiles) error{func(pd pprofile.Profiles) error {
				_, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
				return err
			}}
			exporters := []started{
				start(b, true, map[string]any{"compression": "none", "sync": "none", "rotation": large}),
				start(b, true, map[string]any{"compression": "gzip", "sync": "none", "rotation": large}),
				start(b, true, map[string]any{"compression": "zstd", "sync": "none", "rotation": large}),
				start(b, false, map[string]any{"format": "proto"}),
				start(b, false, map[string]any{"format": "proto", "compression": "zstd"}),
			}
			for _, e := range exporters {
				runs = append(runs, func(pd pprofile.Profiles) error { return e.ConsumeProfiles(b.Context(), pd) })
			}
			medians, times := interleave(b, payload.pd, runs)
			for i, name := range []string{"none", "gzip", "zstd", "contrib", "contrib-zstd"} {
				b.ReportMetric(float64(len(record))/medians[i+1], name+"-MB/s")
				b.ReportMetric(float64(exporters[i].size(b))/float64(times[i+1])/float64(len(record)), name+"-size")
			}
			b.ReportMetric(float64(len(record)), "record-B")
			b.ReportMetric(medians[0], "pdata-µs")
			b.ReportMetric(medians[1], "none-µs")
			b.ReportMetric(medians[1]/medians[0], "none/pdata")
			b.ReportMetric(medians[4]/medians[0], "contrib/pdata")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func copyOf(pd pprofile.Profiles) pprofile.Profiles {
	to := pprofile.NewProfiles()
	pd.CopyTo(to)
	return to
}

// interleave returns the median time of each run in µs, and the number of rounds. The runs take
// turns, so that other load on the machine affects all of them.
func interleave(b *testing.B, pd pprofile.Profiles, runs []func(pd pprofile.Profiles) error) (medians []float64, counts []int) {
	const (
		enough, least, most = 4 * time.Second, 10, 400 // rounds
		each                = 5
	)
	times := make([][]time.Duration, len(runs))
	begin := time.Now()
	for round := 0; round < least || round < most && time.Since(begin) < enough; round++ {
		for i, run := range runs {
			for range each {
				fresh := copyOf(pd)
				before := time.Now()
				require.NoError(b, run(fresh))
				times[i] = append(times[i], time.Since(before))
			}
		}
	}
	for _, t := range times {
		slices.Sort(t)
		medians = append(medians, float64(t[len(t)/2].Nanoseconds())/1000)
		counts = append(counts, len(t))
	}
	return medians, counts
}
