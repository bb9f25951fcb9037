// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/grafana/jfr-parser/parser"
	"github.com/grafana/jfr-parser/pprof"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// BenchmarkJFR compares, on each recording, the translation with jfr-parser's parse alone, with its conversion to
// pprof, and with pdata's unmarshal of the result, and the sizes of both, gzipped. They take turns, and medians are
// compared. Translations reuse the metadata of the recording before if these are the same. The one that is
// called cold follows a recording with other metadata.
func BenchmarkJFR(b *testing.B) {
	translate := func(data []byte) error {
		_, err := (&jfrtranslator.Unmarshaler{NormalizeClassNames: true}).UnmarshalProfiles(data)
		return err
	}
	other := jfrwriter.New().Bytes()
	for _, r := range recordings(b) {
		b.Run(r.name, func(b *testing.B) {
			pd, err := (&jfrtranslator.Unmarshaler{}).UnmarshalProfiles(r.data)
			require.NoError(b, err)
			otlp := profiletest.Proto(b, pd)
			contestants := []struct {
				name  string
				run   func() error
				times []time.Duration
			}{
				{name: "cold", run: func() error { return translate(r.data) }},
				{name: "ours", run: func() error { return translate(r.data) }},
				{name: "jfr-parser", run: func() error { return parse(r.data) }},
				{name: "jfr-parser-pprof", run: func() error {
					_, err := pprof.ParseJFR(r.data, &pprof.ParseInput{SampleRate: 100}, nil)
					return err
				}},
				{name: "pdata", run: func() error {
					_, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(otlp)
					return err
				}},
			}
			for b.Loop() {
				require.NoError(b, translate(other))
				for i := range contestants {
					c := &contestants[i]
					start := time.Now()
					require.NoError(b, c.run())
					c.times = append(c.times, time.Since(start))
				}
			}
			medians := map[string]float64{}
			for _, c := range contestants {
				slices.Sort(c.times)
				medians[c.name] = float64(c.times[len(c.times)/2].Microseconds())
				b.ReportMetric(medians[c.name], c.name+"-µs")
				if c.name != "cold" {
					b.ReportMetric(testing.AllocsPerRun(1, func() { _ = c.run() }), c.name+"-allocs")
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(len(r.data)), "jfr-B")
			b.ReportMetric(medians["ours"]/medians["jfr-parser"], "ours/jfr-parser")
			b.ReportMetric(medians["ours"]/medians["jfr-parser-pprof"], "ours/jfr-parser-pprof")
			b.ReportMetric(medians["cold"]/medians["jfr-parser"], "cold/jfr-parser")
			b.ReportMetric(medians["ours"]/medians["pdata"], "ours/pdata")
			b.ReportMetric(float64(gzipped(b, otlp))/float64(gzipped(b, r.data)), "otlp-gz/jfr-gz")
		})
	}
}

func parse(data []byte) error {
	p := parser.NewParser(data, parser.Options{})
	for {
		if _, err := p.ParseEvent(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func gzipped(b *testing.B, data []byte) int {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	require.NoError(b, err)
	require.NoError(b, w.Close())
	return out.Len()
}
