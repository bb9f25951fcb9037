// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/translator/foldedtranslator"
)

const foldedQuery = httpserver.IngestPath + "?name=cart&from=1700000000&until=1700000010"

func TestIngestFoldedStacks(t *testing.T) {
	const body = "main;work 3\nmain;idle 1"
	for query, want := range map[string]string{
		"":                             "cpu nanoseconds main;idle 10000000 main;work 30000000",
		"&format=groups&units=samples": "cpu nanoseconds main;idle 10000000 main;work 30000000",
		"&format=folded&sampleRate=1000&spyName=pyroscope-rs":  "cpu nanoseconds main;idle 1000000 main;work 3000000",
		"&format=collapsed&units=bytes":                        "alloc_space bytes main;idle 1 main;work 3",
		"&format=groups&units=objects&aggregationType=average": "inuse_objects count main;idle 1 main;work 3",
		"&format=groups&units=lock_nanoseconds":                "delay nanoseconds main;idle 1 main;work 3",
		"&format=groups&units=lock_samples":                    "contentions count main;idle 1 main;work 3",
		"&format=groups&units=goroutines":                      "goroutines count main;idle 1 main;work 3",
	} {
		pd := passedOn(t, "", func(b *testReceiver) answer { return b.post(foldedQuery+query, []byte(body)) })
		expanded := profiletest.Expand(t, pd)
		text, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
		require.NoError(t, err)
		assert.Equal(t, want, expanded[0].Type+" "+expanded[0].Unit+" "+strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", " "), query)
		profile := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0)
		assert.EqualValues(t, uint64(1700000000e9), profile.Time())
		if want[:5] != "inuse" && want[:5] != "gorou" { // snapshots have none
			assert.Equal(t, uint64(10e9), profile.DurationNano())
		}
		assert.False(t, profile.ProfileID().IsEmpty())
	}
}

func TestIngestCountsLines(t *testing.T) {
	pd := passedOn(t, "", func(b *testReceiver) answer {
		return b.post(foldedQuery+"&format=lines&sampleRate=1000", []byte("main;work 7\nmain;idle\nmain;work 7\n"))
	})
	text, err := foldedtranslator.Marshaler{}.MarshalProfiles(pd)
	require.NoError(t, err)
	assert.Equal(t, "main;idle 1000000\nmain;work 7 2000000\n", string(text))
}
