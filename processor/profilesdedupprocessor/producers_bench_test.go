// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// BenchmarkProducers passes profiles to a window from two goroutines, compared with one. The window
// holds them already, or they are new to it.
func BenchmarkProducers(b *testing.B) {
	const rounds = 9
	for _, row := range []struct {
		name     string
		services int
		held     bool
	}{
		{"one_service", 1, true},
		{"100_services", 100, true},
		{"100_services,_new", 100, false},
	} {
		profiles := serviceProfiles(b, row.services)
		passes := 1
		if row.held {
			passes = max(1, 400/len(profiles))
		}
		run := func(goroutines int) float64 {
			p := newTestProcessor(b, &downstream{}, func(c *Config) {
				c.Window = time.Hour
				c.MemoryLimit = 1 << 30
			})
			defer func() { require.NoError(b, p.Shutdown(context.Background())) }()
			if row.held {
				for _, pd := range profiles {
					require.NoError(b, p.ConsumeProfiles(b.Context(), pd))
				}
			}
			var next atomic.Int64
			var producers sync.WaitGroup
			start := time.Now()
			for range goroutines {
				producers.Go(func() {
					for i := int(next.Add(1)) - 1; i < passes*len(profiles); i = int(next.Add(1)) - 1 {
						if err := p.ConsumeProfiles(b.Context(), profiles[i%len(profiles)]); err != nil {
							b.Error(err)
						}
					}
				})
			}
			producers.Wait()
			return float64(passes*len(profiles)) / time.Since(start).Seconds()
		}
		var ones, twos, ratios []float64
		for range rounds {
			one, two := run(1), run(2)
			ones, twos, ratios = append(ones, one), append(twos, two), append(ratios, two/one)
		}
		b.Run("profiles="+row.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op") // which hides it
			b.ReportMetric(median(ones), "one/s")
			b.ReportMetric(median(twos), "two/s")
			b.ReportMetric(median(ratios), "two/one")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// serviceProfiles returns a CPU profile of 600 samples for each service. One service has 20.
func serviceProfiles(b *testing.B, services int) (all []pprofile.Profiles) {
	for i := range max(services, 20) {
		var data bytes.Buffer
		w := profiletest.Workload{Name: "service", Samples: 600, MinDepth: 20, MaxDepth: 40, Functions: 400}
		require.NoError(b, w.Pprof(uint64(min(i, services-1))).WriteUncompressed(&data))
		pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(data.Bytes())
		require.NoError(b, err)
		pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", fmt.Sprintf("service-%d", min(i, services-1)))
		all = append(all, pd)
	}
	return all
}
