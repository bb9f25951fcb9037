// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// unchecked is merged for payloads that do not conform to the format, and stay so.
func unchecked(t *testing.T, options *Options, payloads ...pprofile.Profiles) pprofile.Profiles {
	t.Helper()
	w := NewWindow(options)
	for _, pd := range payloads {
		require.NoError(t, add(w, pd))
	}
	return w.Emit("")
}

// A Profile with an original payload is passed on as it is: with samples of 0, in several
// shapes, whose sums int64 does not hold, and with the attributes that others lose.
func TestOriginalPayloadsAsTheyAre(t *testing.T) {
	type sampleData struct {
		attributes []string
		values     []int64
		times      []uint64
	}
	samples := []sampleData{
		{nil, []int64{math.MaxInt64}, nil},
		{nil, []int64{math.MaxInt64}, nil},
		{nil, []int64{0}, nil},
		{[]string{"a"}, []int64{1, 2, 2}, []uint64{30, 10, 20}},
		{nil, nil, []uint64{5, 4}},
	}
	original := func(duration uint64, payload string) pprofile.Profiles {
		pd := payloadtest.Interval(math.MaxUint64-1, duration, 1)
		d := pd.Dictionary()
		d.StringTable().Append("thread.id", "a")
		d.AttributeTable().AppendEmpty()
		a := d.AttributeTable().AppendEmpty()
		a.SetKeyStrindex(3)
		a.Value().SetStr("a")
		p := payloadtest.Only(t, pd)
		p.SetProfileID(pprofile.ProfileID{1})
		p.SetOriginalPayloadFormat("jfr")
		p.OriginalPayload().FromRaw([]byte(payload))
		p.Samples().RemoveIf(func(pprofile.Sample) bool { return true })
		for _, from := range samples {
			s := p.Samples().AppendEmpty()
			s.Values().FromRaw(from.values)
			s.TimestampsUnixNano().FromRaw(from.times)
			if len(from.attributes) > 0 {
				s.AttributeIndices().Append(1)
			}
		}
		return pd
	}
	options := defaultOptions()
	options.DropTimestamps = true
	options.DropSampleAttributes = []string{"thread.id"}
	for _, snapshots := range []Snapshots{SnapshotsKeep, SnapshotsLatest, SnapshotsSum} {
		options.Snapshots = snapshots
		for _, duration := range []uint64{0, math.MaxUint64} {
			out := unchecked(t, options, original(duration, "payload"), payloadtest.Interval(1, 1, 1))
			found := 0
			eachProfile(out, func(p pprofile.Profile) {
				if p.OriginalPayloadFormat() == "" {
					return
				}
				found++
				require.Equal(t, []byte("payload"), p.OriginalPayload().AsRaw())
				require.Equal(t, pprofile.ProfileID{1}, p.ProfileID())
				require.Equal(t, duration, p.DurationNano())
				var got []sampleData
				for _, s := range p.Samples().All() {
					var keys []string
					for _, i := range s.AttributeIndices().All() {
						keys = append(keys, out.Dictionary().AttributeTable().At(int(i)).Value().Str())
					}
					got = append(got, sampleData{keys, s.Values().AsRaw(), s.TimestampsUnixNano().AsRaw()})
				}
				require.Equal(t, samples, got)
			})
			require.Equal(t, 1, found)
		}
	}
}

// Original payloads that differ in their samples alone come in an order of their own,
// not in that of their arrival.
func TestOriginalPayloadsInAnyOrder_P15(t *testing.T) {
	var payloads []pprofile.Profiles
	for i := range int64(4) {
		pd := payloadtest.Interval(1, 1, i%3)
		p := payloadtest.Only(t, pd)
		p.SetOriginalPayloadFormat("jfr")
		p.OriginalPayload().FromRaw([]byte("payload"))
		p.Samples().AppendEmpty().TimestampsUnixNano().Append(uint64(9 - i))
		payloads = append(payloads, pd)
	}
	want := marshal(t, unchecked(t, defaultOptions(), payloads...))
	slices.Reverse(payloads)
	require.Equal(t, want, marshal(t, unchecked(t, defaultOptions(), payloads...)))
	profiletest.Injected(t, "2 orders of 4 payloads")
}
