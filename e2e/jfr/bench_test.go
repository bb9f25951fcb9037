// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package jfr

import (
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/grafana/jfr-parser/parser"
	"github.com/grafana/jfr-parser/pprof"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/jfrwriter"
	"github.com/otelcol-profiles/otelcol-profiles/translator/jfrtranslator"
)

// BenchmarkJFR compares, on each recording, the translation with jfr-parser's parse alone and with its conversion to
// pprof. They take turns, and medians are compared. Translations reuse the metadata of the recording before if these are the same.
// The one that is called cold follows a recording with other metadata.
func BenchmarkJFR(b *testing.B) {
	translate := func(data []byte) error {
		_, err := (&jfrtranslator.Unmarshaler{NormalizeClassNames: true}).UnmarshalProfiles(data)
		return err
	}
	other := jfrwriter.New().Bytes()
	for _, r := range recordings(b) {
		b.Run(r.name, func(b *testing.B) {
			contestants := []struct {
				name  string
				run   func(data []byte) error
				times []time.Duration
			}{
				{name: "cold", run: translate},
				{name: "ours", run: translate},
				{name: "jfr-parser", run: parse},
				{name: "jfr-parser-pprof", run: func(data []byte) error {
					_, err := pprof.ParseJFR(data, &pprof.ParseInput{SampleRate: 100}, nil)
					return err
				}},
			}
			for b.Loop() {
				require.NoError(b, translate(other))
				for i := range contestants {
					c := &contestants[i]
					start := time.Now()
					require.NoError(b, c.run(r.data))
					c.times = append(c.times, time.Since(start))
				}
			}
			medians := map[string]float64{}
			for _, c := range contestants {
				slices.Sort(c.times)
				medians[c.name] = float64(c.times[len(c.times)/2].Microseconds())
				b.ReportMetric(medians[c.name], c.name+"-µs")
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(medians["ours"]/medians["jfr-parser"], "ours/jfr-parser")
			b.ReportMetric(medians["ours"]/medians["jfr-parser-pprof"], "ours/jfr-parser-pprof")
			b.ReportMetric(medians["cold"]/medians["jfr-parser"], "cold/jfr-parser")
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
