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
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// start starts an exporter with these keys and a new directory. Contrib's writes to the file "file" in it.
func start(tb testing.TB, ours bool, keys map[string]any) (e xexporter.Profiles, directory string) {
	tb.Helper()
	directory = tb.TempDir()
	factory := fileexporter.NewFactory().(xexporter.Factory)
	key, path := "path", filepath.Join(directory, "file")
	if ours {
		factory = profilesfileexporter.NewFactory().(xexporter.Factory)
		key, path = "directory", directory
	}
	config := factory.CreateDefaultConfig()
	conf := confmap.NewFromStringMap(keys)
	require.NoError(tb, conf.Merge(confmap.NewFromStringMap(map[string]any{key: path})))
	require.NoError(tb, conf.Unmarshal(config))
	require.NoError(tb, confmap.Validate(config))
	e, err := factory.CreateProfiles(context.Background(), exportertest.NewNopSettings(factory.Type()), config)
	require.NoError(tb, err)
	require.NoError(tb, e.Start(context.Background(), componenttest.NewNopHost()))
	return e, directory
}

// TestSameRecords checks that files have the bytes of contrib's, apart from compression.
func TestSameRecords(t *testing.T) {
	for _, format := range []string{"proto", "json"} {
		t.Run(format, func(t *testing.T) {
			ours, directory := start(t, true, map[string]any{"format": format, "group_by": []any{}})
			theirs, other := start(t, false, map[string]any{"format": format})
			random := profiletest.NewRand(1)
			for range 50 {
				pd := profiletest.GenerateProfiles(random)
				pd.MarkReadOnly()
				require.NoError(t, ours.ConsumeProfiles(t.Context(), pd))
				require.NoError(t, theirs.ConsumeProfiles(t.Context(), pd))
			}
			require.NoError(t, ours.Shutdown(t.Context()))
			require.NoError(t, theirs.Shutdown(t.Context()))
			var got []byte
			files, err := filepath.Glob(filepath.Join(directory, "*/*/*/*/*.otlp.*"))
			require.NoError(t, err)
			for _, file := range files {
				got = append(got, profiletest.ReadPlain(t, file)...)
			}
			want, err := os.ReadFile(filepath.Join(other, "file"))
			require.NoError(t, err)
			assert.True(t, bytes.Equal(want, got), "the files have different bytes")
		})
	}
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
			names := []string{"json", "proto", "contrib"}
			for _, name := range names {
				keys := map[string]any{"format": name, "group_by": []any{}, "sync": "none", "rotation": large}
				if name == "contrib" {
					keys = map[string]any{"format": "proto"}
				}
				e, _ := start(b, name != "contrib", keys)
				defer func() { require.NoError(b, e.Shutdown(context.Background())) }()
				runs = append(runs, func(pd pprofile.Profiles) error { return e.ConsumeProfiles(b.Context(), pd) })
			}
			medians := interleave(b, payload.pd, runs)
			for i, name := range names {
				b.ReportMetric(float64(len(record))/medians[i+1], name+"-MB/s")
			}
			b.ReportMetric(float64(len(record)), "record-B")
			b.ReportMetric(medians[2]/medians[0], "proto/pdata")
			b.ReportMetric(medians[3]/medians[0], "contrib/pdata")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func copyOf(pd pprofile.Profiles) pprofile.Profiles {
	to := pprofile.NewProfiles()
	pd.CopyTo(to)
	return to
}

// interleave returns the median time of each run in µs. The runs take
// turns, so that other load on the machine affects all of them.
func interleave(b *testing.B, pd pprofile.Profiles, runs []func(pd pprofile.Profiles) error) (medians []float64) {
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
	}
	return medians
}
