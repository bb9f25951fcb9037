// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/dictionary"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// A window of a collector that catches up holds Profiles of many hours. A summary of all of them would say
// nothing about any. Profiles of replicas and of scrapes overlap or have gaps.
func TestSummariesAreOfOneMinuteAndCoverItsTimesOnce(t *testing.T) {
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	pd := pprofile.NewProfiles()
	profiles := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles()
	for _, later := range []time.Duration{30 * time.Second, 5 * time.Second, 50 * time.Second, 0, time.Hour, 61 * time.Minute} {
		p := profiles.AppendEmpty()
		p.SetTime(pcommon.NewTimestampFromTime(noon.Add(later)))
		p.SetDurationNano(uint64(10 * time.Second))
	}
	got, err := Summarize(pd)
	require.NoError(t, err)
	want := func(start, length, covered time.Duration, n int) Total {
		at := uint64(noon.Add(start).UnixNano())
		latest := at + uint64(length-10*time.Second)
		return Total{Start: at, Latest: latest, End: at + uint64(length), Covered: uint64(covered), Profiles: n}
	}
	require.Len(t, got, 3)
	assert.Equal(t, want(0, time.Minute, 35*time.Second, 4), got[0].Total, "0 to 15, 30 to 40 and 50 to 60")
	assert.Equal(t, want(time.Hour, 10*time.Second, 10*time.Second, 1), got[1].Total)
	assert.Equal(t, want(61*time.Minute, 10*time.Second, 10*time.Second, 1), got[2].Total)
}

// Marshalling makes references into the string table of all strings of resources and scopes, which unmarshalling resolves.
func TestSummariesOfAReadPayloadAreThoseOfTheWrittenOne(t *testing.T) {
	payloads := []pprofile.Profiles{withServiceName(t, func(v pcommon.Value) { v.SetInt(5) }), withServiceName(t, func(v pcommon.Value) {
		v.SetEmptyMap().PutEmptySlice("names").AppendEmpty().SetStr("checkout")
	})}
	random := profiletest.NewRand(3)
	for range 50 {
		payloads = append(payloads, profiletest.GenerateProfiles(random))
	}
	for _, pd := range payloads {
		want, err := Summarize(pd)
		require.NoError(t, err)
		read := profiletest.Unmarshal(t, profiletest.Proto(t, pd))
		got, err := Summarize(read)
		require.NoError(t, err)
		require.Equal(t, want, got)
		if service, found := read.ResourceProfiles().At(0).Resource().Attributes().Get("service.name"); found && len(got) > 0 {
			assert.Equal(t, dictionary.ValidUTF8(service.AsString()), got[0].Service)
		}
	}
}

func withServiceName(t *testing.T, set func(pcommon.Value)) pprofile.Profiles {
	t.Helper()
	pd := profiletest.Small(t)
	set(pd.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("service.name"))
	return pd
}

func TestSnapshotsOfOtherAttributesAreOthers(t *testing.T) {
	ids := map[uint64]bool{}
	for _, set := range []func(pcommon.Value){
		func(pcommon.Value) {}, func(v pcommon.Value) { v.SetStr("1") }, func(v pcommon.Value) { v.SetInt(1) }, func(v pcommon.Value) { v.SetDouble(0) },
	} {
		ids[snapshotID(t, set)] = true
	}
	assert.Len(t, ids, 4)
	assert.True(t, ids[snapshotID(t, func(v pcommon.Value) { v.SetDouble(math.Copysign(0, -1)) })], "equal to 0")
}

// snapshotID returns Key.Snapshot of a Profile whose resource has an attribute.
func snapshotID(t *testing.T, set func(pcommon.Value)) uint64 {
	t.Helper()
	pd := pprofile.NewProfiles()
	rp := pd.ResourceProfiles().AppendEmpty()
	set(rp.Resource().Attributes().PutEmpty("key"))
	rp.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
	summaries, err := Summarize(pd)
	require.NoError(t, err)
	require.Len(t, summaries, 1)
	require.NotZero(t, summaries[0].Snapshot)
	return summaries[0].Snapshot
}

func TestValuesThatNestTooDeepHaveNoSummary(t *testing.T) {
	_, err := Summarize(withServiceName(t, func(v pcommon.Value) {
		for range dictionary.MaxDepth + 1 {
			v = v.SetEmptySlice().AppendEmpty()
		}
	}))
	require.ErrorContains(t, err, "nests deeper than 64 levels")
}
