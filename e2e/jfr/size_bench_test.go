// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
	"github.com/otelcol-profiles/otelcol-profiles/translator/perfscripttranslator"
)

// timestamped are payloads with timestamps of each source.
func timestamped(b *testing.B) map[string][]pprofile.Profiles {
	all := map[string][]pprofile.Profiles{}
	b.Run("corpus", func(b *testing.B) {
		all["eBPF profiler"] = profiletest.CorpusOTLP(b)
		b.SkipNow() // it is no benchmark
	})
	names := map[string]string{
		"goland": "JFR of async-profiler", "cortex-dev-01__kafka-0__cpu_lock0_alloc0__0": "JFR of Pyroscope",
		"event-with-type-zero": "JFR of Datadog", "object-allocation-sample": "JFR of the JDK",
	}
	for _, r := range recordings(b) {
		if name := names[r.name]; name != "" {
			pd, err := (&jfrtranslator.Unmarshaler{Timestamps: true, NormalizeClassNames: true}).UnmarshalProfiles(r.data)
			require.NoError(b, err)
			all[name] = append(all[name], pd)
		}
	}
	text, err := os.ReadFile("../../translator/perfscripttranslator/testdata/sched.txt")
	require.NoError(b, err)
	pd, err := (&perfscripttranslator.Unmarshaler{}).UnmarshalProfiles(text)
	require.NoError(b, err)
	all["perf script: sched_switch"] = append(all["perf script: sched_switch"], pd)
	return all
}

// BenchmarkTimestampSizes compares what a window writes with and without timestamps: as it is, by gzip and by zstd.
func BenchmarkTimestampSizes(b *testing.B) {
	for name, payloads := range timestamped(b) {
		b.Run("source="+name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op") // which hides it
			timestamps := 0
			var zipped [2]float64
			for i, drop := range []bool{false, true} {
				options := &merge.Options{DropZeroSamples: true, DropTimestamps: drop}
				w := merge.NewWindow(options)
				for _, pd := range payloads {
					payload, err := merge.Check(pd, options)
					require.NoError(b, err)
					require.NoError(b, w.Add(payload))
				}
				out := w.Emit("")
				for p := range sampletypes.ProfilesOf(out) {
					for _, s := range p.Samples().All() {
						timestamps += s.TimestampsUnixNano().Len()
					}
				}
				data, suffix := profiletest.Proto(b, out), []string{"", "-without"}[i]
				zipped[i] = float64(len(profiletest.Zstd(b, data)))
				b.ReportMetric(float64(len(data)), "plain"+suffix+"-B")
				b.ReportMetric(float64(len(profiletest.Gzip(b, data))), "gzip"+suffix+"-B")
				b.ReportMetric(zipped[i], "zstd"+suffix+"-B")
			}
			b.ReportMetric(float64(timestamps), "timestamps")
			b.ReportMetric((zipped[0]-zipped[1])/float64(timestamps), "zstd-B/timestamp")
		})
	}
}
