// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// BenchmarkScale fills windows that grow in one respect, and writes them. Adding is shown
// of the last tenth.
func BenchmarkScale(b *testing.B) {
	const variants = 20 // of what is added, so that code is shared and samples vary
	var small []pprofile.Profiles
	for seed := range uint64(variants) {
		w := profiletest.Workload{Name: "service", Samples: 500 + int(seed)*10, MinDepth: 20, MaxDepth: 40, Functions: 400}
		small = append(small, unmarshalPprof(b, encodePprof(w.Pprof(1))))
	}
	for _, profiles := range []int{1, 10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("of=one service/profiles=%d", profiles), func(b *testing.B) {
			scale(b, profiles, func(i int) pprofile.Profiles { return small[i%variants] })
		})
	}
	for _, services := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("of=services/profiles=%d", services), func(b *testing.B) {
			scale(b, services, func(i int) pprofile.Profiles {
				pd := small[i%variants]
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", fmt.Sprintf("service-%d", i))
				return pd
			})
		})
	}
	for _, stacks := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprintf("of=%d distinct stacks/profiles=10", stacks), func(b *testing.B) {
			scale(b, 10, func(i int) pprofile.Profiles {
				w := profiletest.Workload{Name: "stacks", Samples: stacks / 10, MinDepth: 20, MaxDepth: 40, Functions: 8000}
				return unmarshalPprof(b, encodePprof(w.Pprof(uint64(i+1))))
			})
		})
	}
}

// shortest is the time of the fastest of some runs.
func shortest(run func()) time.Duration {
	const most, enough = 20, time.Second // runs; altogether
	best, begin := time.Duration(0), time.Now()
	for n := range most {
		before := time.Now()
		run()
		if took := time.Since(before); n == 0 || took < best {
			best = took
		}
		if time.Since(begin) > enough {
			break
		}
	}
	return best
}

// scale adds the profiles that of returns to a window, and writes it.
func scale(b *testing.B, profiles int, of func(i int) pprofile.Profiles) {
	b.Helper()
	w := NewWindow(defaultOptions())
	last := max(profiles/10, 1)
	var adding time.Duration
	for i := range profiles {
		pd := of(i)
		begin := time.Now()
		require.NoError(b, add(w, pd))
		if i >= profiles-last {
			adding += time.Since(begin)
		}
	}
	retained := w.Size()
	out := w.Emit("")
	flush := shortest(func() { out = w.Emit("") })
	size := (&pprofile.ProtoMarshaler{}).ProfilesSize(out)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(adding.Microseconds())/float64(last), "add-µs")
	b.ReportMetric(float64(flush.Microseconds())/1000, "flush-ms")
	b.ReportMetric(float64(flush.Microseconds())/float64(profiles), "flush/profile-µs")
	b.ReportMetric(float64(retained), "window-B")
	b.ReportMetric(float64(size), "out-B")
	b.ReportMetric(float64(retained)/float64(size), "window/out")
}
