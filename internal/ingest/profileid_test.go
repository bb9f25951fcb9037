// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

func newTestIngester(t *testing.T, next xconsumer.Profiles) *Ingester {
	t.Helper()
	return New(Settings{
		Logger:      zap.NewNop(),
		Unmarshaler: &pproftranslator.Unmarshaler{Limits: pproftranslator.Limits{DecompressedSize: 64 << 20}},
		Metrics: Metrics{
			PayloadSize:         noop.Int64Counter{},
			TranslationDuration: noop.Float64Histogram{},
			Repairs:             noop.Int64Counter{},
			Attributes:          metric.WithAttributes(),
		},
	}, next)
}

// ids are the profile IDs of what an Ingester passes on of these payloads of one request, in
// the order of the payloads.
func ids(t *testing.T, payloads ...Payload) (all []pprofile.ProfileID) {
	t.Helper()
	batch := newTestIngester(t, consumertest.NewNop()).NewBatch(budget.New(1 << 30).Lease(0))
	results, err := batch.Translate(t.Context(), 1<<30, slices.Clone(payloads))
	require.NoError(t, err)
	for _, translated := range results {
		require.NoError(t, translated.Err)
		for profile := range sampletypes.ProfilesOf(translated.Profiles) {
			all = append(all, profile.ProfileID())
		}
	}
	return all
}

func payload(data []byte, given pcommon.Timestamp) Payload {
	return Payload{Data: data, Resource: pcommon.NewMap(), TimeRange: TimeRange{Start: given}}
}

// A request that is sent again has the same IDs if the payload or the request states a time,
// whatever it holds. Nothing else has them.
func TestProfileIDsOfARequestSentAgain_P13(t *testing.T) {
	const given = pcommon.Timestamp(1.7e18)
	timeless, timestamped, own := timed(t, 0, 0, 0), timed(t, 0, 0, 1.6e18, 0), timed(t, 1.6e18, 0, 0)
	for name, request := range map[string][]Payload{
		"time of the request":         {payload(timeless, given)},
		"time of the payload":         {payload(own, 0)},
		"timestamps":                  {payload(timestamped, 0)},
		"time of the file":            {{Data: timeless, Resource: pcommon.NewMap(), Modified: given}},
		"equal payloads of a request": {payload(own, 0), payload(timeless, given), payload(own, 0), payload(timestamped, 0), payload(timestamped, 0)},
	} {
		once := ids(t, request...)
		assert.Equal(t, once, ids(t, request...), name)
		distinct := map[pprofile.ProfileID]bool{}
		for _, id := range once {
			assert.False(t, distinct[id], "%s: two Profiles have one ID", name)
			distinct[id] = true
		}
	}
	assert.NotEqual(t, ids(t, payload(timeless, given)), ids(t, payload(timeless, given+1)), "two moments")
	assert.Equal(t, ids(t, payload(own, given)), ids(t, payload(own, given+1)), "the payload's time counts")
}

// So has any request of any profiles with a time, however many of them are equal.
func TestProfileIDsOfRandomRequests_P13(t *testing.T) {
	random := rand.New(rand.NewPCG(profiletest.Seed(t), 13))
	for range profiletest.Rounds(t, 50, 5000) {
		var request []Payload
		for range 1 + random.IntN(4) {
			data := profiletest.Pprof(t, profiletest.GeneratePprof(random))
			if len(data) == 0 {
				continue
			}
			given := pcommon.Timestamp(1.7e18 + random.Int64N(2))
			for range 1 + random.IntN(3) {
				request = append(request, payload(data, given))
			}
		}
		once, again := ids(t, request...), ids(t, request...)
		require.Equal(t, once, again)
		slices.SortFunc(once, func(a, b pprofile.ProfileID) int { return bytes.Compare(a[:], b[:]) })
		require.Len(t, slices.Compact(once), len(again))
	}
}

// Without any stated time, each push is a profile of its own.
func TestProfileIDsWithoutATime(t *testing.T) {
	timeless := timed(t, 0, 0, 0)
	distinct := map[pprofile.ProfileID]bool{}
	for i := range 3 {
		p := payload(timeless, 0)
		p.Arrived = time.Unix(1.7e9, int64(i))
		for _, id := range ids(t, p) {
			distinct[id] = true
		}
	}
	assert.Len(t, distinct, 3*2)
}
