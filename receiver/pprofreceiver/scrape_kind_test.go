// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/difference"
)

// What a kind's profiles are handed on as, with what temporality.
func TestSeriesOfKinds(t *testing.T) {
	asTheyAre := func(alloc, inuse ingest.Temporality) [][]ingest.Temporality {
		return [][]ingest.Temporality{{alloc, alloc, inuse, inuse}}
	}
	apart := [][]ingest.Temporality{{ingest.TemporalityInstant, ingest.TemporalityInstant}, {ingest.TemporalityDelta, ingest.TemporalityDelta}}
	differences := [][]ingest.Temporality{{ingest.TemporalityDelta, ingest.TemporalityDelta, ingest.TemporalityDelta, ingest.TemporalityDelta}}
	for name, want := range map[string]struct{ with, without [][]ingest.Temporality }{
		ingest.ProfileTypeCPU:          {asTheyAre(ingest.TemporalityDelta, ingest.TemporalityDelta), asTheyAre(ingest.TemporalityDelta, ingest.TemporalityDelta)},
		ingest.ProfileTypeHeap:         {apart, asTheyAre(ingest.TemporalityCumulative, ingest.TemporalityInstant)},
		ingest.ProfileTypeAllocs:       {apart, asTheyAre(ingest.TemporalityCumulative, ingest.TemporalityInstant)},
		ingest.ProfileTypeGoroutine:    {asTheyAre(ingest.TemporalityInstant, ingest.TemporalityInstant), asTheyAre(ingest.TemporalityInstant, ingest.TemporalityInstant)},
		ingest.ProfileTypeThreadCreate: {asTheyAre(ingest.TemporalityInstant, ingest.TemporalityInstant), asTheyAre(ingest.TemporalityInstant, ingest.TemporalityInstant)},
		ingest.ProfileTypeMutex:        {differences, asTheyAre(ingest.TemporalityCumulative, ingest.TemporalityCumulative)},
		ingest.ProfileTypeBlock:        {differences, asTheyAre(ingest.TemporalityCumulative, ingest.TemporalityCumulative)},
		"delta_heap":                   {apart, apart},
		"delta_mutex":                  {differences, differences},
		"delta_block":                  {differences, differences},
	} {
		kind, known := scrapeKinds[name]
		require.True(t, known, name)
		for deltas, want := range map[bool][][]ingest.Temporality{true: want.with, false: want.without} {
			series := kind.series(deltas)
			var step difference.Step
			for n := range int64(2) {
				p := profiletest.HeapPprof(10*n, 1000*n, 1, 100)
				p.TimeNanos += n
				var err error
				step, err = series.Next(plain(t, p), time.Unix(1_700_000_000, n))
				require.NoError(t, err)
				series.Accept(step)
			}
			var got [][]ingest.Temporality
			for _, part := range step.Parts {
				parsed, err := profile.ParseData(part.Payload)
				require.NoError(t, err)
				of := kind.temporalityOf(part)
				var types []ingest.Temporality
				for _, sampleType := range parsed.SampleType {
					types = append(types, of(sampleType.Type))
				}
				got = append(got, types)
			}
			assert.Equal(t, want, got, "%s, delta: %t", name, deltas)
		}
	}
	assert.Len(t, scrapeKinds, 10, "each has its row above")
	unknown := kindOfPath("/custom/profiles/mine")
	assert.Equal(t, &difference.Series{}, unknown.series(true))
}
