// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// BenchmarkQuery sums 1,000 windows of one service. It compares that with the least
// that they take: reading and unmarshalling the windows. The program has 4,000 stacks, of which each
// window has 200: some are in most windows, most in few.
func BenchmarkQuery(b *testing.B) {
	const windows, perWindow = 1000, 200
	w := profiletest.Workloads()[0]
	w.Samples, w.Functions = 4000, 1000
	program, rnd := w.Pprof(1), rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(rnd, 1.1, 50, uint64(len(program.Sample)-1))
	var payloads []pprofile.Profiles
	for i := range windows {
		p := program.Copy()
		chosen := map[uint64]bool{}
		for len(chosen) < perWindow {
			chosen[zipf.Uint64()] = true
		}
		all := p.Sample
		p.Sample = nil
		for _, n := range slices.Sorted(maps.Keys(chosen)) {
			p.Sample = append(p.Sample, all[n])
		}
		data := profiletest.Pprof(b, p.Compact())
		pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data)
		require.NoError(b, err)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", "checkout")
		for _, profile := range pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
			profile.SetTime(pcommon.Timestamp(nano(10 * i)))
			profile.SetDurationNano(10e9)
		}
		payloads = append(payloads, pd)
	}
	s := source(b, payloads...)
	runs := []func(){
		func() {
			for record, err := range s.Options.Records(b.Context(), s.Files[0], archive.Part{}) {
				require.NoError(b, err)
				profiletest.Unmarshal(b, record.Data)
			}
		},
		func() {
			result, err := s.Merge(context.Background(), &query.Selection{Services: []string{"checkout"}}, true)
			require.NoError(b, err)
			_, err = result.Pprof(b.Context())
			require.NoError(b, err)
		},
	}
	// They take turns, so that what else the machine does meets all alike.
	times := make([][]time.Duration, len(runs))
	for b.Loop() {
		for i, run := range runs {
			start := time.Now()
			run()
			times[i] = append(times[i], time.Since(start))
		}
	}
	var medians [2]float64
	for i, t := range times {
		slices.Sort(t)
		medians[i] = t[len(t)/2].Seconds() * 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(s.Files[0].Size), "file-B")
	for i, name := range []string{"read", "query"} {
		b.ReportMetric(medians[i], name+"-ms")
	}
	b.ReportMetric(medians[1]/medians[0], "query/read")
}
