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
// nothing about any.
func TestSummariesAreOfOneMinute(t *testing.T) {
	pd := profiletest.Small(t)
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	first := profiles.At(0)
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	first.SetTime(pcommon.NewTimestampFromTime(noon))
	first.SetDurationNano(uint64(10 * time.Second))
	for _, later := range []time.Duration{10 * time.Second, time.Hour, 24 * time.Hour} {
		p := profiles.AppendEmpty()
		first.CopyTo(p)
		p.SetTime(pcommon.NewTimestampFromTime(noon.Add(later)))
	}
	summaries, err := Summarize(pd)
	require.NoError(t, err)
	var counts []int
	for _, s := range summaries {
		if s.Start < uint64(noon.UnixNano()) {
			continue // others of the payload
		}
		counts = append(counts, s.Profiles)
		assert.LessOrEqual(t, time.Duration(s.End-s.Start), time.Minute+10*time.Second)
	}
	assert.Equal(t, []int{2, 1, 1}, counts)
}

// Profiles of replicas and of scrapes overlap or have gaps.
func TestSummaryCoversTheTimesOfItsProfilesOnce(t *testing.T) {
	pd := profiletest.Small(t)
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	first := profiles.At(0)
	profiles.RemoveIf(func(p pprofile.Profile) bool { return p != first })
	noon := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for _, later := range []time.Duration{30 * time.Second, 5 * time.Second, 50 * time.Second, 0} {
		p := profiles.AppendEmpty()
		first.CopyTo(p)
		p.SetTime(pcommon.NewTimestampFromTime(noon.Add(later)))
		p.SetDurationNano(uint64(10 * time.Second))
	}
	profiles.RemoveIf(func(p pprofile.Profile) bool { return p == first })
	summaries, err := Summarize(pd)
	require.NoError(t, err)
	assert.Equal(t, 4, summaries[0].Profiles)
	assert.Equal(t, time.Minute, time.Duration(summaries[0].End-summaries[0].Start))
	assert.Equal(t, 35*time.Second, time.Duration(summaries[0].Covered), "0 to 15, 30 to 40 and 50 to 60")
	first = profiles.At(0)
	profiles.RemoveIf(func(p pprofile.Profile) bool { return p != first })
	summaries, err = Summarize(pd)
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, time.Duration(summaries[0].Covered))
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
	ids := map[uint64]string{}
	for name, set := range map[string]func(pcommon.Value){
		"empty": func(pcommon.Value) {}, "text": func(v pcommon.Value) { v.SetStr("1") }, "no text": func(v pcommon.Value) { v.SetStr("") },
		"int": func(v pcommon.Value) { v.SetInt(1) }, "bool": func(v pcommon.Value) { v.SetBool(true) },
		"double": func(v pcommon.Value) { v.SetDouble(1) },
		"bytes":  func(v pcommon.Value) { v.SetEmptyBytes().Append('1') }, "no bytes": func(v pcommon.Value) { v.SetEmptyBytes() },
		"list": func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetStr("1") }, "no list": func(v pcommon.Value) { v.SetEmptySlice() },
		"map": func(v pcommon.Value) { v.SetEmptyMap().PutStr("1", "") }, "no map": func(v pcommon.Value) { v.SetEmptyMap() },
		"list in list": func(v pcommon.Value) { v.SetEmptySlice().AppendEmpty().SetEmptySlice().AppendEmpty().SetStr("1") },
	} {
		id := snapshotID(t, set)
		require.Empty(t, ids[id], name)
		ids[id] = name
	}
	zero := snapshotID(t, func(v pcommon.Value) { v.SetDouble(0) })
	assert.Equal(t, zero, snapshotID(t, func(v pcommon.Value) { v.SetDouble(math.Copysign(0, -1)) }))
	assert.Empty(t, ids[zero])
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

func TestSummarizeRejectsDeepAttributes(t *testing.T) {
	pd := profiletest.Small(t)
	v := pd.ResourceProfiles().At(0).Resource().Attributes().PutEmpty("key")
	for range dictionary.MaxDepth {
		v = v.SetEmptySlice().AppendEmpty()
	}
	_, err := Summarize(pd)
	require.NoError(t, err)
	v.SetEmptySlice().AppendEmpty()
	_, err = Summarize(pd)
	assert.Error(t, err)
}
