// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func of(pd pprofile.Profiles, attributes ...string) pprofile.Profiles {
	for _, rp := range pd.ResourceProfiles().All() {
		for i := 0; i < len(attributes); i += 2 {
			rp.Resource().Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
	return pd
}

// snapshot is a reading of one sample.
func snapshot(process string, time uint64, value int64) pprofile.Profiles {
	return of(interval(time, 0, value), "service.name", "checkout", "service.instance.id", process)
}

// Ten snapshots of one process, and of three whose resources become equal.
func TestP14_Snapshots(t *testing.T) {
	var one, three []pprofile.Profiles
	for i := range uint64(10) {
		one = append(one, snapshot("a", 10+i, int64(i+1)))
		for n, process := range []string{"a", "b", "c"} {
			three = append(three, snapshot(process, 10+i, int64(100*n)+int64(i)))
		}
	}
	values := func(pd pprofile.Profiles) (all []int64) {
		eachProfile(pd, func(p pprofile.Profile) { all = append(all, p.Samples().At(0).Values().At(0)) })
		return all
	}
	for _, test := range []struct {
		snapshots string
		payloads  []pprofile.Profiles
		dropped   []string
		want      []int64
	}{
		{snapshotsKeep, one, nil, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{snapshotsLatest, one, nil, []int64{10}},
		{snapshotsLatest, append(one[5:len(one):len(one)], one[:5]...), nil, []int64{10}},
		{snapshotsSum, one, nil, []int64{55}},
		{snapshotsLatest, three, nil, []int64{9, 109, 209}},
		{snapshotsLatest, three, []string{"service.instance.id"}, []int64{327}},
		{snapshotsSum, three, []string{"service.instance.id"}, []int64{3135}},
	} {
		settings := defaultSettings()
		settings.snapshots, settings.dropResourceAttributes = test.snapshots, setOf(test.dropped)
		settings.dropZeroSamples = false
		out := merged(t, settings, test.payloads...)
		profiletest.Injected(t, fmt.Sprintf("%d readings", len(test.payloads)))
		require.Equal(t, test.want, values(out), "%s %v", test.snapshots, test.dropped)
		if test.snapshots == snapshotsLatest {
			eachProfile(out, func(p pprofile.Profile) {
				require.EqualValues(t, 19, p.Time())
				require.Zero(t, p.DurationNano(), "a reading still")
			})
		}
	}
}

// The series of the corpus: the last reading is what it was.
func TestP14_CorpusSeries(t *testing.T) {
	var series []pprofile.Profiles
	for _, file := range profiletest.Corpus(t) {
		if strings.HasPrefix(file.Name, "go-heap-series/") {
			series = append(series, unmarshalPprof(t, file.Data))
		}
	}
	settings := defaultSettings()
	settings.snapshots = snapshotsLatest
	out := merged(t, settings, series...)
	require.Equal(t, 4, out.ProfileCount())
	requireSameSums(t, series[len(series)-1:], out)
	profiletest.Injected(t, fmt.Sprintf("%d readings", len(series)))
}

// routed is a downstream that notes the client metadata of what it accepts.
type routed struct {
	refuse   func(value string) error
	accepted map[string]int64 // by metadata
	others   map[string]string
	attempts map[string]int
}

func (*routed) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (d *routed) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	metadata := client.FromContext(ctx).Metadata
	values := strings.Join(metadata.Get("service.name"), ",")
	d.attempts[values]++
	if err := d.refuse(values); err != nil {
		return err
	}
	for _, rp := range pd.ResourceProfiles().All() {
		name, ok := rp.Resource().Attributes().Get("Service.Name")
		if ok != (len(metadata.Get("service.name")) == 1) || name != (pcommon.Value{}) && name.Str() != values {
			return consumererror.NewPermanent(errors.New("a resource of another value"))
		}
	}
	if violations, _ := profiletest.Conformance(pd); len(violations) > 0 {
		return consumererror.NewPermanent(errors.New(violations[0]))
	}
	d.others[values] = strings.Join(metadata.Get("tenant"), ",")
	eachProfile(pd, func(p pprofile.Profile) { d.accepted[values] += p.Samples().At(0).Values().At(0) })
	return nil
}

func newRouted() *routed {
	return &routed{
		refuse: func(string) error { return nil }, accepted: map[string]int64{},
		others: map[string]string{}, attempts: map[string]int{},
	}
}

// One self-contained payload for each value, with client metadata; what one of them
// meets does not touch the others.
func TestSplitBy(t *testing.T) {
	payload := func() pprofile.Profiles {
		pd := pprofile.NewProfiles()
		for i, service := range []string{"a", "b", "c", ""} {
			one := identified(byte(i+1), 1<<i)
			if service != "" {
				of(one, "Service.Name", service)
			}
			if i == 0 {
				one.CopyTo(pd)
			} else {
				one.ResourceProfiles().At(0).CopyTo(pd.ResourceProfiles().AppendEmpty())
			}
		}
		return pd
	}
	for _, window := range []time.Duration{0, time.Second} {
		for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
			synctest.Test(t, func(t *testing.T) {
				next := newRouted()
				next.refuse = func(value string) error {
					switch {
					case value == "b":
						return consumererror.NewPermanent(errors.New("never"))
					case value == "c" && next.attempts[value] < 3:
						return errors.New("unavailable")
					}
					return nil
				}
				p := newTestProcessor(t, next, func(c *Config) {
					c.Window, c.Acknowledge, c.SplitBy = window, acknowledge, []string{"Service.Name"}
				})
				ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"tenant": {"t"}})})
				for range 3 {
					err := p.ConsumeProfiles(ctx, payload())
					time.Sleep(time.Minute)
					require.Equal(t, window == 0 || acknowledge == acknowledgeOnFlush, err != nil)
				}
				require.Equal(t, map[string]int64{"a": 1, "c": 4, "": 8}, next.accepted, "each once")
				if window == 0 {
					require.Equal(t, "t", next.others["a"], "the other metadata stay")
				}
				require.NoError(t, p.Shutdown(t.Context()))
			})
		}
	}
}

func TestSplitByEncodesValues(t *testing.T) {
	s := mergeSettings{splitBy: []string{"a", "b"}}
	seen := map[string]bool{}
	for _, values := range [][]string{{"", ""}, {"x", ""}, {"", "x"}, {"xx", "x"}, {"x", "xx"}, nil, {"x"}} {
		m := pcommon.NewMap()
		for i, v := range values {
			m.PutStr(s.splitBy[i], v)
		}
		key := s.partitionOf(m)
		require.False(t, seen[key])
		seen[key] = true
		metadata := s.metadata(client.Info{}, key).Metadata
		for i, name := range s.splitBy {
			want := values[min(i, len(values)):min(i+1, len(values))]
			require.ElementsMatch(t, want, metadata.Get(name))
		}
	}
}

// Dropped attributes leave the sums of what remains as they were.
func TestDropAttributes(t *testing.T) {
	settings := defaultSettings()
	settings.dropSampleAttributes = setOf([]string{"thread_id", "thread_name"})
	for _, file := range profiletest.Corpus(t) {
		if file.Name != "thread-labels.pb.gz" {
			continue
		}
		pd := unmarshalPprof(t, file.Data)
		before, err := profiletest.Expand(pd)
		require.NoError(t, err)
		for _, e := range before {
			for _, s := range e.Samples {
				s.Attributes = without(s.Attributes, settings.dropSampleAttributes)
			}
		}
		out := merged(t, settings, pd)
		after, err := profiletest.Expand(out)
		require.NoError(t, err)
		options := profiletest.Options{Merge: true, IgnoreProfileID: true, IgnoreZeroSamples: true}
		require.Less(t, out.SampleCount(), pd.SampleCount())
		require.Empty(t, profiletest.Diff(profiletest.Normalize(before, options), profiletest.Normalize(after, options)))
	}

	settings.dropResourceAttributes = setOf([]string{"service.instance.id"})
	var payloads []pprofile.Profiles
	for i := range 5 {
		payloads = append(payloads, of(interval(1, 1, 1), "service.name", "a", "service.instance.id", fmt.Sprint(i)))
	}
	out := merged(t, settings, payloads...)
	require.EqualValues(t, 5, onlyProfile(t, out).Samples().At(0).Values().At(0))
	require.Equal(t, map[string]any{"service.name": "a"}, out.ResourceProfiles().At(0).Resource().Attributes().AsRaw())
}

// Timestamps alone become their count.
func TestTimestampsDrop(t *testing.T) {
	settings := defaultSettings()
	settings.dropTimestamps = true
	payloads := profiletest.CorpusOTLP(t)
	out := merged(t, settings, payloads...)
	want := int64(0)
	for _, pd := range payloads {
		eachProfile(pd, func(p pprofile.Profile) {
			for _, s := range p.Samples().All() {
				want += int64(s.TimestampsUnixNano().Len())
			}
		})
	}
	got := int64(0)
	eachProfile(out, func(p pprofile.Profile) {
		for _, s := range p.Samples().All() {
			require.Zero(t, s.TimestampsUnixNano().Len())
			got += s.Values().At(0)
		}
	})
	require.Equal(t, want, got)
}
