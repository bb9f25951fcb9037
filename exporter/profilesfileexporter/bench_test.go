// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// benchmarkProfiles gives mutable profiles of about the size of a real one: the
// largest of the corpus, or generated ones.
func benchmarkProfiles(b *testing.B, generated bool) pprofile.Profiles {
	if generated {
		pd := pprofile.NewProfiles()
		random := profiletest.NewRand(1)
		for (&pprofile.ProtoMarshaler{}).ProfilesSize(pd) < 512<<10 {
			require.NoError(b, profiletest.GenerateProfiles(random).MergeTo(pd))
		}
		return pd
	}
	var largest pprofile.Profiles
	size := -1
	for _, pd := range profiletest.CorpusOTLP(b) {
		if n := (&pprofile.ProtoMarshaler{}).ProfilesSize(pd); n > size {
			largest, size = pd, n
		}
	}
	if size < 0 {
		b.Skip("the corpus holds no OTLP profiles")
	}
	return largest
}

// BenchmarkConsume compares marshalling alone with marshalling and writing.
func BenchmarkConsume(b *testing.B) {
	for _, data := range []string{"generated", "corpus"} {
		b.Run("data="+data+"/marshal", func(b *testing.B) {
			pd := benchmarkProfiles(b, data == "generated")
			b.ReportAllocs()
			for b.Loop() {
				record, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
				require.NoError(b, err)
				b.SetBytes(int64(len(record)))
			}
		})
		for _, compression := range []string{compressionNone, compressionGzip, compressionZstd} {
			b.Run("data="+data+"/export="+compression, func(b *testing.B) {
				pd := benchmarkProfiles(b, data == "generated")
				cfg := createDefaultConfig().(*Config)
				cfg.Directory, cfg.Compression = b.TempDir(), compression
				e, logs := startExporter(b, cfg)
				b.ReportAllocs()
				b.SetBytes(int64((&pprofile.ProtoMarshaler{}).ProfilesSize(pd)))
				for b.Loop() {
					require.NoError(b, e.ConsumeProfiles(b.Context(), pd))
				}
				require.NoError(b, e.Shutdown(b.Context()))
				var size, raw int64
				for _, line := range logs.All() {
					fields := line.ContextMap()
					size += fields["bytes"].(int64)
					raw += fields["uncompressed_bytes"].(int64)
				}
				b.ReportMetric(float64(size)/float64(raw), "size/raw")
				b.Logf("wrote %s bytes", strconv.FormatInt(size, 10))
			})
		}
	}
}
