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

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// replicas are three pods of half a core each, profiled for 10 s of each minute, never at once, by payload; and a heap of each.
func replicas(t *testing.T, minutes int) (payloads []pprofile.Profiles) {
	for minute := range minutes {
		for pod := range 3 {
			start := 60*minute + 20*pod
			of := profileOf{pod: fmt.Sprintf("pod-%d", pod), start: start}
			cpu, heap := of, of
			cpu.typ, cpu.sampleType, cpu.unit, cpu.duration, cpu.value, cpu.label = "cpu", "cpu", "nanoseconds", 10, 5e9, "main"
			heap.typ, heap.sampleType, heap.unit, heap.value = "heap", "inuse_space", "bytes", 100
			payloads = append(payloads, payload(t, cpu, heap))
		}
	}
	return payloads
}

func TestSeriesOfReplicas(t *testing.T) {
	s := indexed(t, segment.Proto, replicas(t, 20)...)
	for name, source := range map[string]*query.Source{"indexed": s.Source, "plain": s.plain} {
		sel := &query.Selection{From: at(600), To: at(1200)}
		all, err := source.Series(t.Context(), sel, nil)
		require.NoError(t, err, name)
		require.Len(t, all, 2, name)
		from, to := all[0].Bounds(sel)
		cpu := all[0].Summary(from, to)
		assert.InEpsilon(t, 1.5, cpu.Rate/1e9, 0.01, "%s: %+v", name, cpu)
		assert.InEpsilon(t, 0.5, cpu.PerProcess/1e9, 0.01, name)
		assert.Equal(t, 3, cpu.Processes, name)
		assert.InEpsilon(t, 300, cpu.Covered, 0.01, name)
		assert.True(t, all[1].Snapshots, name)
		sum, n, last := all[1].Living(from, to)
		assert.EqualValues(t, 300, sum, name)
		assert.Equal(t, 3, n, name)
		assert.Equal(t, nano(1180), last, name)

		all, err = source.Series(t.Context(), &query.Selection{Types: []string{"cpu"}}, nil)
		require.NoError(t, err, name)
		require.Len(t, all, 1, name)
		from, to = all[0].Bounds(&query.Selection{})
		assert.Equal(t, []uint64{nano(0), nano(1190) + 1}, []uint64{from, to}, name)

		// By pod, and of the samples of a thread.
		sel = &query.Selection{Types: []string{"cpu"}, From: at(600), To: at(1200)}
		require.NoError(t, sel.Set("label", "thread=main"))
		all, err = source.Series(t.Context(), sel, []string{"k8s.pod.name"})
		require.NoError(t, err, name)
		require.Len(t, all, 3, name)
		for i, of := range all {
			assert.Equal(t, []string{fmt.Sprintf("pod-%d", i)}, of.Values, name)
			got := of.Summary(of.Bounds(sel))
			assert.InEpsilon(t, 0.5, got.Rate/1e9, 0.01, name)
		}
	}
}

func TestSeriesIncludeTheTimeBeforeTheRange(t *testing.T) {
	s := indexed(t, segment.Proto, replicas(t, 20)...)
	sel := &query.Selection{Types: []string{"cpu"}, From: at(605), To: at(616)} // no interval begins in it
	all, err := s.Series(t.Context(), sel, nil)
	require.NoError(t, err)
	require.Len(t, all, 1)
	got := all[0].Summary(all[0].Bounds(sel))
	assert.InEpsilon(t, 1.5, got.Rate/1e9, 0.01, "%+v", got)
}

func TestSeriesAreBounded(t *testing.T) {
	key := contents.Key{Service: "checkout", Type: "cpu", SampleType: "cpu", Unit: "nanoseconds"}
	const hours = 24
	add := func(limit int64, pods int) (*query.SeriesCollector, error) {
		c := query.NewSeriesCollector(&query.Selection{From: at(0), To: at(hours * 3600)}, limit)
		for i := range hours * 360 {
			for pod := range pods {
				row := processes.Row{Hash: uint64(pod + 1), Start: nano(10 * i), End: nano(10*i + 5), Covered: 5e9, Value: 1e9, Profiles: 1, Processes: 1}
				of := contents.Summary{Key: key, Total: contents.Total{Start: row.Start, Latest: row.Start, End: row.End, Rows: []processes.Row{row}}}
				if err := c.Add(&query.Times{Summary: &of}); err != nil {
					return c, err
				}
			}
		}
		return c, nil
	}
	for _, limit := range []int64{1 << 30, 1 << 20} {
		c, err := add(limit, 3)
		require.NoError(t, err)
		got := c.Series()[0].Summary(nano(0), nano(hours*3600))
		assert.InEpsilon(t, 0.6, got.Rate/1e9, 0.001)
		assert.InEpsilon(t, 3*hours*1800, got.Covered, 0.001)
	}
	_, err := add(100<<10, 20)
	assert.ErrorContains(t, err, "select less")
}

// TestStepsAddUp: what is before, in and after steps adds up, however they divide an interval.
func TestStepsAddUp(t *testing.T) {
	for _, length := range []int{1, 7, 60, 600} {
		all := map[int]int64{}
		total := int64(0)
		steps := query.Steps{From: at(0), Length: time.Duration(length) * time.Second, Count: 1200 / length}
		for i := range 50 {
			value := int64(1e9 + i)
			start, end := nano(13*i), nano(13*i+i)
			if end > uint64(steps.To().UnixNano()) {
				break
			}
			total += value
			shares := 0.0
			steps.Spread(start, end, value, func(step int, part int64, share float64) {
				all[step] += part
				shares += share
			})
			assert.InEpsilon(t, 1, shares, 1e-9)
		}
		sum := int64(0)
		for _, v := range all {
			sum += v
		}
		assert.Equal(t, total, sum, "steps of %d s", length)
	}
	steps, parts := query.Steps{From: at(0), Length: 10 * time.Second, Count: 2}, map[int]int64{}
	steps.Spread(nano(-10), nano(40), 103, func(step int, part int64, _ float64) { parts[step] = part })
	assert.Equal(t, map[int]int64{0: 21, 1: 20}, parts, "20.6 each: what is before and the first step are rounded up")
}

// TestStepsOfTimestampsAreNotSpread: only what has no timestamp is.
func TestStepsOfTimestampsAreNotSpread(t *testing.T) {
	stamped := profileOf{pod: "a", typ: "cpu", sampleType: "cpu", unit: "nanoseconds", start: 0, duration: 40, value: 5, timestamps: []int{3, 35}}
	plain := profileOf{pod: "b", typ: "cpu", sampleType: "cpu", unit: "nanoseconds", start: 0, duration: 40, value: 40}
	s := indexed(t, segment.Proto, payload(t, stamped), payload(t, plain))
	steps := query.Steps{From: at(0), Length: 10 * time.Second, Count: 4}
	for name, source := range map[string]*query.Source{"indexed": s.Source, "plain": s.plain} {
		for _, by := range [][]string{nil, {"k8s.pod.name"}} {
			got := map[int]int64{}
			sel := &query.Selection{From: steps.From, To: steps.To()}
			require.NoError(t, source.EachStep(t.Context(), sel, steps, by, func(step int, of *query.Times) error {
				if step >= 0 {
					got[step] += of.Sum
					return nil
				}
				for _, row := range of.Rows {
					steps.Spread(row.Start, row.End, row.Value, func(step int, part int64, _ float64) { got[step] += part })
				}
				return nil
			}))
			assert.Equal(t, map[int]int64{0: 15, 1: 10, 2: 10, 3: 15}, got, "%s %v", name, by)
		}
	}
}
