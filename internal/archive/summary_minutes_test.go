// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/fileindex"
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
	summaries, err := archive.Summarize(pd)
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

// The maps of a payload are kept for the next one, whose dictionary is another.
func TestSummariesDoNotDependOnPayloadsBefore(t *testing.T) {
	heap := func(first, second string) []fileindex.Summary {
		pd := pprofile.NewProfiles()
		dict := pd.Dictionary()
		dict.StringTable().Append("", first, second, "key", "")
		for range 2 {
			a := dict.AttributeTable().AppendEmpty()
			a.SetKeyStrindex(3)
			a.Value().SetStr(first)
		}
		profiles := pd.ResourceProfiles().AppendEmpty().ScopeProfiles().AppendEmpty().Profiles()
		for i := range 2 {
			p := profiles.AppendEmpty()
			p.SampleType().SetTypeStrindex(int32(1 + i))
			p.AttributeIndices().Append(int32(i))
		}
		summaries, err := archive.Summarize(pd)
		require.NoError(t, err)
		return summaries
	}
	want := heap("cpu", "inuse_space")
	other := heap("goroutine", "samples")
	require.Equal(t, want, heap("cpu", "inuse_space"))
	require.Len(t, want, 2)
	assert.Equal(t, "cpu", want[0].SampleType)
	assert.Zero(t, want[0].Snapshot)
	assert.NotZero(t, want[1].Snapshot)
	assert.NotZero(t, other[0].Snapshot)
	assert.NotEqual(t, want[1].Snapshot, other[1].Snapshot)
}
