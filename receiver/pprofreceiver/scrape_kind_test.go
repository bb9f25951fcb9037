// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/difference"
)

// What a kind's profiles are handed on as, with what temporality.
func TestSeriesOfKinds(t *testing.T) {
	asTheyAre := func(alloc, inuse temporality) [][]temporality { return [][]temporality{{alloc, alloc, inuse, inuse}} }
	apart := [][]temporality{{temporalityInstant, temporalityInstant}, {temporalityDelta, temporalityDelta}}
	differences := [][]temporality{{temporalityDelta, temporalityDelta, temporalityDelta, temporalityDelta}}
	for name, want := range map[string]struct{ with, without [][]temporality }{
		kindCPU:          {asTheyAre(temporalityDelta, temporalityDelta), asTheyAre(temporalityDelta, temporalityDelta)},
		kindHeap:         {apart, asTheyAre(temporalityCumulative, temporalityInstant)},
		kindAllocs:       {apart, asTheyAre(temporalityCumulative, temporalityInstant)},
		kindGoroutine:    {asTheyAre(temporalityInstant, temporalityInstant), asTheyAre(temporalityInstant, temporalityInstant)},
		kindThreadCreate: {asTheyAre(temporalityInstant, temporalityInstant), asTheyAre(temporalityInstant, temporalityInstant)},
		kindMutex:        {differences, asTheyAre(temporalityCumulative, temporalityCumulative)},
		kindBlock:        {differences, asTheyAre(temporalityCumulative, temporalityCumulative)},
		"delta_heap":     {apart, apart},
		"delta_mutex":    {differences, differences},
		"delta_block":    {differences, differences},
	} {
		kind, known := scrapeKinds[name]
		require.True(t, known, name)
		for deltas, want := range map[bool][][]temporality{true: want.with, false: want.without} {
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
			var got [][]temporality
			for _, part := range step.Parts {
				parsed, err := profile.ParseData(part.Payload)
				require.NoError(t, err)
				of := kind.temporalityOf(part)
				var types []temporality
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
