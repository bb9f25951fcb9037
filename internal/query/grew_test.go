// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// fleet is an hour of services, each with a pod: one leaks 10 MiB a minute, one works twice as hard from the middle on, one varies without a
// trend, one is new, one is calm, and one shrinks.
func fleet(t *testing.T) (payloads []pprofile.Profiles) {
	t.Helper()
	const mib, core = 1 << 20, 1e9
	rng := rand.New(rand.NewPCG(1, 2))
	for minute := range 60 {
		for service, of := range map[string]struct{ cores, heap float64 }{
			"leaking": {0.1, 100 + 10*float64(minute)}, "busier": {0.5 + 0.5*float64(minute/30), 100}, "noisy": {0.2 + 0.6*rng.Float64(), 100 + 300*rng.Float64()},
			"new": {0.3 * float64(minute/30), 50 * float64(minute/30)}, "calm": {0.4, 200}, "shrinking": {0.8 - 0.01*float64(minute), 300},
		} {
			if service == "new" && minute < 30 {
				continue
			}
			cpu := usage{pod: service, start: 60 * minute, duration: 10, functions: map[string]int64{"main.work": int64(of.cores * 10 * core)}}
			heap := usage{pod: service, start: 60 * minute, functions: map[string]int64{"main.cache": int64(of.heap * mib)}}
			for _, u := range []*usage{&cpu, &heap} {
				pd := u.payload(t)
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("service.name", service)
				payloads = append(payloads, pd)
			}
		}
	}
	return payloads
}

func TestGrowthsFindLeaksAndRegressions_T3(t *testing.T) {
	s := indexed(t, segment.Proto, fleet(t)...)
	for name, source := range map[string]*query.Source{"indexed": s.Source, "plain": s.plain} {
		got, err := source.Growths(t.Context(), &query.Selection{From: at(-3600)}) // there is nothing before
		require.NoError(t, err, name)
		assert.Equal(t, []any{at(0).UTC(), true}, []any{got.First.From, got.First.To.Before(got.Last.From)}, name)
		type change struct {
			service, sampleType string
		}
		var grew, shrank, noise []change
		rows := map[change]query.Growth{}
		for _, row := range got.Rows {
			c := change{row.Service, row.SampleType}
			rows[c] = row
			switch {
			case row.Noise:
				noise = append(noise, c)
			case row.Weight > 0:
				grew = append(grew, c)
			default:
				shrank = append(shrank, c)
			}
		}
		assert.Equal(t, []change{{"leaking", "inuse_space"}, {"busier", "cpu"}, {"new", "cpu"}, {"new", "inuse_space"}}, grew, name)
		assert.Equal(t, []change{{"shrinking", "cpu"}}, shrank, name)
		assert.Len(t, noise, 7, name)
		leak, busier := rows[change{"leaking", "inuse_space"}], rows[change{"busier", "cpu"}]
		assert.InEpsilon(t, 195<<20, leak.Before, 0.05, name)
		assert.InEpsilon(t, 595<<20, leak.After, 0.05, name)
		by, ok := busier.Change()
		assert.True(t, ok, name)
		assert.InEpsilon(t, 1, by, 0.05, name)
		assert.True(t, rows[change{"new", "cpu"}].IsNew, name)

		one, err := source.Growths(t.Context(), &query.Selection{Services: []string{"leaking"}, Types: []string{"heap"}})
		require.NoError(t, err, name)
		require.Len(t, one.Rows, 1, name)
		c, err := query.Compare(t.Context(), source, one.Last, source, one.First)
		require.NoError(t, err, name)
		functions := c.Functions(c.Shown())
		assert.Equal(t, "main.cache", functions[0].Function, name)
		assert.InEpsilon(t, 400<<20, functions[0].New.Total-functions[0].Base.Total, 0.05, name)

		none, err := source.Growths(t.Context(), &query.Selection{Services: []string{"other"}})
		require.NoError(t, err, name)
		assert.Nil(t, none.Rows, name)
	}
}

func TestGrowthsTakeTheTypeThatStands(t *testing.T) {
	var payloads []pprofile.Profiles
	for minute := range 20 {
		start := 60 * minute
		payloads = append(payloads, payload(t, cpu(start, 1e9),
			profileOf{pod: "a", typ: "cpu", sampleType: "samples", unit: "count", start: start, duration: 10, value: 100},
			heap("a", start, 100), profileOf{pod: "a", typ: "heap", sampleType: "inuse_objects", unit: "count", start: start, value: 3},
			profileOf{pod: "a", typ: "heap", sampleType: "alloc_space", unit: "bytes", start: start, duration: 10, value: 5, temporality: "delta"},
			profileOf{pod: "a", typ: "heap", sampleType: "alloc_objects", unit: "count", start: start, duration: 10, value: 5, temporality: "delta"}))
	}
	got, err := source(t, payloads...).Growths(t.Context(), &query.Selection{})
	require.NoError(t, err)
	var kinds []string
	for _, row := range got.Rows {
		kinds = append(kinds, row.SampleType)
		assert.True(t, row.Noise, "nothing grew: %+v", row)
	}
	assert.ElementsMatch(t, []string{"cpu", "inuse_space", "alloc_space"}, kinds)
}

// BenchmarkGrowths has 300 services for an hour, of which an index tells all.
func BenchmarkGrowths(b *testing.B) {
	sel := &query.Selection{From: at(0), To: at(3600)}
	for b.Loop() {
		c := query.NewSeriesCollector(sel, 1<<30)
		for service := range 300 {
			for minute := range 60 {
				of := contents.Summary{
					Key: contents.Key{Service: string(rune('a' + service)), Type: "cpu", SampleType: "cpu", Unit: "nanoseconds"},
					Total: contents.Total{Start: nano(60 * minute), Latest: nano(60 * minute), End: nano(60*minute + 10), Rows: []processes.Row{{
						Hash: 1, Start: nano(60 * minute), End: nano(60*minute + 10), Covered: 10e9, Value: int64(service * minute), Profiles: 1, Processes: 1,
					}}},
				}
				if err := c.Add(&query.Times{Summary: &of}); err != nil {
					b.Fatal(err)
				}
			}
		}
		for _, series := range c.Series() {
			series.Growth(nano(0), nano(3600))
		}
	}
}
