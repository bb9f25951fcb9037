// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// program is a service: all that its windows are drawn from.
type program struct {
	seed  uint64
	pprof *profile.Profile
	all   []*profile.Sample
	zipf  *rand.Zipf
}

func newProgram(seed uint64, samples, functions int) *program {
	w := profiletest.Workloads()[0]
	w.Samples, w.Functions = samples, functions
	p := &program{seed: seed, pprof: w.Pprof(seed), zipf: rand.NewZipf(profiletest.NewRand(seed), 1.1, 50, uint64(samples-1))}
	p.all = p.pprof.Sample
	return p
}

// window returns n of the samples, of CPU time in ten seconds or of the heap, at a time.
func (p *program) window(b *testing.B, n int, heap bool, at time.Time) pprofile.Profiles {
	chosen := map[uint64]bool{}
	for len(chosen) < n {
		chosen[p.zipf.Uint64()] = true
	}
	p.pprof.Sample = nil
	for _, i := range slices.Sorted(maps.Keys(chosen)) {
		p.pprof.Sample = append(p.pprof.Sample, p.all[i])
	}
	window := p.pprof.Compact()
	window.TimeNanos = at.UnixNano()
	if heap {
		window.SampleType = []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}}
		window.PeriodType, window.DurationNanos = &profile.ValueType{Type: "space", Unit: "bytes"}, 0
	}
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(b, window))
	require.NoError(b, err)
	return payloadtest.With(pd, "service.name", fmt.Sprint("service-", p.seed), "service.instance.id", fmt.Sprint("pod-", p.seed))
}

// BenchmarkQuery sums 1,000 windows of one service. It compares that with the least
// that they take: reading and unmarshalling the windows. The program has 4,000 stacks, of which each
// window has 200: some are in most windows, most in few.
func BenchmarkQuery(b *testing.B) {
	const windows, perWindow = 1000, 200
	p := newProgram(1, 4000, 1000)
	var payloads []pprofile.Profiles
	for i := range windows {
		payloads = append(payloads, p.window(b, perWindow, false, at(10*i)))
	}
	s := source(b, payloads...)
	runs := []func(){
		func() {
			for record, err := range s.Options.Records(s.Files[0]) {
				require.NoError(b, err)
				profiletest.Unmarshal(b, record.Data)
			}
		},
		func() {
			result, err := s.Merge(context.Background(), &query.Selection{Services: []string{"service-1"}}, true)
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
