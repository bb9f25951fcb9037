// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// Attributes that samples lose, such as ids of threads, are not in the tables of the window: payload by payload
// there are more.
func TestDroppedAttributesTakeNoMemory(t *testing.T) {
	options := defaultOptions()
	options.DropSampleAttributes = []string{"thread.id"}
	w := NewWindow(options)
	add := func(thread, name string) {
		require.NoError(t, add(w, profiletest.Build(t, expand.Profile{Duration: 1, Samples: []*expand.Sample{{
			Attributes: []expand.Attribute{{Key: "thread.id", Value: thread}, {Key: "name", Value: name}}, Sum: big.NewInt(1),
		}}})))
	}
	add("thread 0", "a")
	size := func() int { return w.tables.OutputSize() + w.tables.StringsOutputSize() }
	before := size()
	for i := range 100 {
		add(fmt.Sprint("thread ", i), "a")
	}
	require.Equal(t, before, size())
	add("thread 100", "b")
	require.Greater(t, size(), before)
}

// A resource counts the attributes that it loses beside those that its sender dropped; the most of any source. A snapshot that
// keeps its attributes loses none. Merging again changes nothing.
func TestResourcesCountDroppedAttributes(t *testing.T) {
	options := defaultOptions()
	options.DropResourceAttributes = []string{"service.instance.id", "process.pid", "host.name"}
	options.Snapshots = SnapshotsKeep
	payload := func(keys []string, before uint32, sampleType string) pprofile.Profiles {
		pd := payloadtest.Interval(1000, 10, 5)
		resource := pd.ResourceProfiles().At(0).Resource()
		for _, key := range keys {
			resource.Attributes().PutStr(key, "1")
		}
		resource.SetDroppedAttributesCount(before)
		pd.Dictionary().StringTable().SetAt(1, sampleType)
		return pd
	}
	dropped := func(pd pprofile.Profiles) (counts []uint32) {
		for _, rp := range pd.ResourceProfiles().All() {
			counts = append(counts, rp.Resource().DroppedAttributesCount())
		}
		return counts
	}
	one, two := payload([]string{"service.instance.id"}, 4, "cpu"), payload([]string{"service.instance.id", "process.pid"}, 2, "cpu")
	none := payload([]string{"region"}, 0, "cpu")
	require.Equal(t, []uint32{5}, dropped(merged(t, options, one)))
	require.Equal(t, []uint32{5}, dropped(merged(t, options, one, two)))
	require.Equal(t, []uint32{5}, dropped(merged(t, options, two, one)))
	require.Equal(t, []uint32{4}, dropped(merged(t, options, two)))
	require.Equal(t, []uint32{0}, dropped(merged(t, options, none)))
	require.Equal(t, []uint32{5}, dropped(merged(t, options, merged(t, options, one, two))))
	require.Equal(t, []uint32{1}, dropped(merged(t, options, payload([]string{"process.pid"}, 1, "inuse_objects"))))
	most := payload([]string{"process.pid"}, math.MaxUint32, "cpu")
	require.Equal(t, []uint32{math.MaxUint32}, dropped(merged(t, options, most)))
}

func TestMixedShapes_P4(t *testing.T) {
	for _, time := range []uint64{0, 1000} {
		pd := payloadtest.Interval(time, 10, 5)
		samples := payloadtest.Only(t, pd).Samples()
		samples.AppendEmpty().TimestampsUnixNano().Append(7, 3, 5000, math.MaxUint64)
		both := samples.AppendEmpty()
		both.TimestampsUnixNano().Append(2, 1)
		both.Values().Append(20, 10)
		samples.AppendEmpty() // it says nothing
		out := merged(t, defaultOptions(), pd, pd)
		require.Equal(t, 3, out.ProfileCount())
		for p := range sampletypes.ProfilesOf(out) {
			require.EqualValues(t, time, p.Time(), "no range from 1970")
			require.EqualValues(t, 10, p.DurationNano())
			require.False(t, p.ProfileID().IsEmpty())
			s := p.Samples().At(0)
			values, times := s.Values().AsRaw(), s.TimestampsUnixNano().AsRaw()
			switch {
			case len(times) == 0:
				require.Equal(t, []int64{10}, values)
			case len(values) == 0:
				require.Equal(t, []uint64{3, 3, 7, 7, 5000, 5000, math.MaxUint64, math.MaxUint64}, times)
			default:
				require.Equal(t, []uint64{1, 1, 2, 2}, times)
				require.Equal(t, []int64{10, 10, 20, 20}, values)
			}
		}
	}
}

// The cost of many partitions grows with their number and not with its square.
func TestSplitByManyPartitions(t *testing.T) {
	options := defaultOptions()
	options.SplitBy = []string{"service.name"}
	cost := func(n int) uint64 {
		w := NewWindow(options)
		require.NoError(t, add(w, payloadtest.OfServices(payloadtest.Interval(1, 1, 1), n)))
		require.Len(t, partitionsOf(w), n)
		return profiletest.AllocatedBy(func() {
			for _, key := range partitionsOf(w) {
				require.Equal(t, 1, w.Emit(key).ProfileCount())
			}
		})
	}
	require.Less(t, cost(4000), 16*cost(500))
}

// The values of a partition are those of its resources.
func TestValues(t *testing.T) {
	options := &Options{SplitBy: []string{"a", "b"}}
	seen := map[string]bool{}
	for _, values := range [][]string{{"", ""}, {"x", ""}, {"", "x"}, {"xx", "x"}, {"x", "xx"}, nil, {"x"}} {
		m, want := pcommon.NewMap(), map[string]string{}
		for i, v := range values {
			m.PutStr(options.SplitBy[i], v)
			want[options.SplitBy[i]] = v
		}
		key := options.partition(m)
		require.False(t, seen[key])
		seen[key] = true
		require.Equal(t, want, options.Values(key))
	}
}
