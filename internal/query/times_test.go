// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// collecting are three pods of half a core each, profiled for 10 s of each minute, and a heap of 100 bytes each. In every third minute, the thread gc
// of two pods takes 0.3 cores more, and has 60 more bytes. It is the only thread with a name.
func collecting(t *testing.T, minutes int) (payloads []pprofile.Profiles) {
	for minute := range minutes {
		for pod := range 3 {
			name := fmt.Sprintf("pod-%d", pod)
			cpu := profileOf{pod: name, typ: "cpu", sampleType: "cpu", unit: "nanoseconds", start: 60*minute + 20*pod, duration: 10, value: 5e9}
			heap := profileOf{pod: name, typ: "heap", sampleType: "inuse_space", unit: "bytes", start: cpu.start, value: 100}
			profiles := []profileOf{cpu, heap}
			if minute%3 == 0 && pod < 2 {
				cpu.label, cpu.value, heap.label, heap.value = "gc", 3e9, "gc", 60
				profiles = append(profiles, cpu, heap)
			}
			payloads = append(payloads, payload(t, profiles...))
		}
	}
	return payloads
}

// TestTimeIsThatOfTheProcesses_T1: the time of the processes is the same whichever samples are selected or divided, so that the rates of label values are
// their share of the rate of all.
func TestTimeIsThatOfTheProcesses_T1(t *testing.T) {
	s := indexed(t, segment.Proto, collecting(t, 60)...)
	sel := func(selector string) *query.Selection {
		matchers, err := labels.ParseSelector(selector)
		require.NoError(t, err)
		return &query.Selection{From: at(300), To: at(3360), Labels: matchers}
	}
	const all, gc, other = 1.7, 0.2, 1.5
	for name, source := range map[string]*query.Source{"indexed": s.Source, "plain": s.plain} {
		whole := map[string]rate.Reading{}
		read := func(of *query.Series, within *query.Selection) rate.Reading { return of.Read(of.Bounds(within)) }
		check := func(how string, of *query.Series, within *query.Selection, cores, level float64) {
			got, want := read(of, within), whole[of.SampleType]
			how = fmt.Sprintf("%s, %s of %s: %+v", name, of.SampleType, how, got)
			if of.Snapshot {
				assert.InDelta(t, level, got.Sum, 1e-9, how)
				assert.Equal(t, want.Living, got.Living, how)
				assert.Equal(t, want.At, got.At, how)
			} else {
				assert.InEpsilon(t, cores, got.Rate/1e9, 0.03, how)
			}
			assert.Equal(t, []float64{want.Covered, want.Data, want.Alive, want.MeanProcesses}, []float64{got.Covered, got.Data, got.Alive, got.MeanProcesses}, how)
			assert.Equal(t, 3, got.Processes, how)
		}
		everything := sel("")
		series, err := source.Series(t.Context(), everything, nil)
		require.NoError(t, err)
		require.Len(t, series, 2)
		for _, of := range series {
			whole[of.SampleType] = read(of, everything)
			check("all", of, everything, all, 300)
		}

		for selector, want := range map[string][2]float64{`{thread="gc"}`: {gc, 0}, `{thread=""}`: {other, 300}, `{thread!="gc",k8s.pod.name=~"pod-.*"}`: {other, 300}} {
			selected := sel(selector)
			series, err := source.Series(t.Context(), selected, nil)
			require.NoError(t, err)
			require.Len(t, series, 2, "%s %s", name, selector)
			for _, of := range series {
				check(selector, of, selected, want[0], want[1])
			}
			totals, err := source.Totals(t.Context(), selected)
			require.NoError(t, err)
			require.Len(t, totals, 2)
			for _, of := range totals {
				check("totals of "+selector, of.Series, selected, want[0], want[1])
			}
			for _, typ := range []string{"cpu", "inuse_space"} {
				selected.Types = []string{typ}
				c, err := query.Compare(t.Context(), source, selected, nil, nil)
				require.NoError(t, err)
				require.Len(t, c.New.Result.Series, 1)
				check("comparison of "+selector, c.New.Result.Series[0], selected, want[0], want[1])
				if typ == "inuse_space" {
					assert.InDelta(t, want[1], c.Shown().New.Total, 1e-9, "%s: the flame graph of %s", name, selector)
				}
			}
		}

		series, err = source.Series(t.Context(), everything, []string{"thread"})
		require.NoError(t, err)
		require.Len(t, series, 4)
		for _, of := range series {
			if of.Values[0] == "gc" {
				check("by thread", of, everything, gc, 0)
			} else {
				check("by thread", of, everything, other, 300)
			}
		}

		// A label of the resource divides the processes.
		series, err = source.Series(t.Context(), everything, []string{"k8s.pod.name", "thread"})
		require.NoError(t, err)
		require.Len(t, series, 10, "the third pod has one thread")
		for _, of := range series {
			got := read(of, everything)
			assert.Equal(t, 1, got.Processes, "%s %v", name, of.Values)
			if of.Values[1] == "gc" && !of.Snapshot {
				assert.InEpsilon(t, gc/2, got.Rate/1e9, 0.03, "%s %v", name, of.Values)
			}
		}
		selected := sel(`{k8s.pod.name="pod-0",thread="gc"}`)
		series, err = source.Series(t.Context(), selected, nil)
		require.NoError(t, err)
		require.Len(t, series, 2)
		got := read(series[0], selected)
		assert.InEpsilon(t, gc/2, got.Rate/1e9, 0.03, name)
		assert.Equal(t, 1, got.Processes, name)
		none, err := source.Series(t.Context(), sel(`{thread="none"}`), nil)
		require.NoError(t, err)
		assert.Empty(t, none, "no time without a sample")
	}
}

// TestIdleRecordsAreNotRead: of records without the label of a selection, the index tells the time.
func TestIdleRecordsAreNotRead(t *testing.T) {
	payloads := collecting(t, 6)
	s := indexed(t, segment.Proto, payloads[3:6]...) // a file, which has no threads
	s.spoil(t, 0, 1, 2)
	s.write(t, segment.Proto, nil, payloads[9:12]...)
	matchers, err := labels.ParseSelector(`{thread="gc"}`)
	require.NoError(t, err)
	series, err := s.open(t).Series(t.Context(), &query.Selection{Types: []string{"cpu"}, Labels: matchers}, nil)
	require.NoError(t, err)
	require.Len(t, series, 1)
	got := series[0].Summary(series[0].Bounds(&query.Selection{}))
	assert.InDelta(t, 60, got.Covered, 1e-9)
}

// BenchmarkLabelValues computes the rates of all values of a label of samples, in the minutes of a day of ten pods, each of which has ten of the values.
// It compares ten times as many values: more of them must not read the time of the processes again.
func BenchmarkLabelValues(b *testing.B) {
	key := contents.Key{Service: "checkout", Type: "cpu", SampleType: "cpu", Unit: "nanoseconds"}
	rates := func(values int) time.Duration {
		start := time.Now()
		c := query.NewSeriesCollector(&query.Selection{From: at(0), To: at(24 * 3600)}, 1<<30)
		add := func(row processes.Row, t query.Times) {
			t.Summary = &contents.Summary{Key: key, Total: contents.Total{Start: row.Start, Latest: row.Start, End: row.End, Rows: []processes.Row{row}}}
			t.Whole = "whole"
			require.NoError(b, c.Add(&t))
		}
		for minute := range 24 * 60 {
			for pod := range 10 {
				row := processes.Row{Hash: uint64(pod + 1), Start: nano(60 * minute), End: nano(60*minute + 10), Covered: 10e9, Profiles: 1, Processes: 1}
				add(row, query.Times{IsWhole: true})
				for i := range 10 {
					row.Value = 1e9
					add(row, query.Times{Values: []string{fmt.Sprint((minute*10 + i) % values)}})
				}
			}
		}
		series := c.Series()
		require.Len(b, series, values)
		for _, of := range series {
			of.Summary(nano(0), nano(24*3600))
			of.Steps(nano(0), 60e9, 24*60)
		}
		return time.Since(start)
	}
	few, many := time.Hour, time.Hour
	for b.Loop() {
		few, many = min(few, rates(100)), min(many, rates(1000))
	}
	b.ReportMetric(float64(many)/float64(few), "ratio")
	b.ReportMetric(many.Seconds()*1e3, "ms")
}

// TestProfilesForTheirTimeAreNotMerged: what is there for its time only changes no sum, and no sample types of a pprof.
func TestProfilesForTheirTimeAreNotMerged(t *testing.T) {
	p := profiletest.HeapPprof(1, 10, 2, 20)
	p.TimeNanos = int64(nano(5))
	p.Sample[0].Label = map[string][]string{"thread": {"main"}}
	other := *p.Sample[0]
	other.Label = map[string][]string{"thread": {"gc"}}
	p.Sample = append(p.Sample, &other)
	pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(profiletest.Pprof(t, p))
	require.NoError(t, err)
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	require.Equal(t, 4, profiles.Len())
	for _, i := range []int{0, 2} { // as merging leaves it, which drops samples of 0
		first := true
		profiles.At(i).Samples().RemoveIf(func(pprofile.Sample) bool { first = !first; return first })
	}
	s := source(t, payloadtest.With(pd, "service.name", "checkout"))
	matchers, err := labels.ParseSelector(`{thread="gc"}`)
	require.NoError(t, err)
	sel := &query.Selection{Labels: matchers}
	want, err := s.Merge(t.Context(), sel, true)
	require.NoError(t, err)
	got, err := s.MergeTimed(t.Context(), sel)
	require.NoError(t, err)
	assert.Equal(t, profiletest.Expand(t, want.Profiles), profiletest.Expand(t, got.Profiles))
	wantPprof, err := want.Pprof(t.Context())
	require.NoError(t, err)
	gotPprof, err := got.Pprof(t.Context())
	require.NoError(t, err)
	assert.Equal(t, wantPprof.String(), gotPprof.String())
	assert.Len(t, gotPprof.SampleType, 4)
}
