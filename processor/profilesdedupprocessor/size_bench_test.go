// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

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
	var buf bytes.Buffer
	_, err = buf.ReadFrom(z)
	require.NoError(tb, err)
	return buf.Bytes()
}

// BenchmarkSize prints the bytes of the canonical output beside those of the
// pprof, both gzipped anew, and what the window retained.
func BenchmarkSize(b *testing.B) {
	var series []pprofile.Profiles
	seriesPprof := 0
	for _, file := range profiletest.Corpus(b) {
		data := gunzip(b, file.Data)
		pd := unmarshalPprof(b, data)
		if strings.HasPrefix(file.Name, "go-heap-series") {
			series = append(series, pd)
			seriesPprof += gzipSize(b, data)
		}
		reportSize(b, file.Name, gzipSize(b, data), pd)
	}
	reportSize(b, "go-heap-series, ten in one", seriesPprof, series...)
}

func reportSize(b *testing.B, name string, pprof int, payloads ...pprofile.Profiles) {
	b.Run(name, func(b *testing.B) {
		for range b.N {
			var im importer
			w := newWindow(defaultSettings())
			for _, pd := range payloads {
				require.NoError(b, im.add(w, pd))
			}
			plain, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(w.profiles())
			require.NoError(b, err)
			translated := 0
			for _, pd := range payloads {
				translated += gzipSize(b, marshal(b, pd))
			}
			otlp := gzipSize(b, plain)
			b.ReportMetric(float64(pprof), "pprof-gz-B")
			b.ReportMetric(float64(translated)/float64(pprof), "translated/pprof")
			b.ReportMetric(float64(otlp)/float64(pprof), "canonical/pprof")
			b.ReportMetric(float64(w.retained())/float64(len(plain)), "retained/otlp")
			b.ReportMetric(0, "ns/op")
		}
	})
}
