// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/rate"
)

func TestWordsSayRateProcessesAndCoverage(t *testing.T) {
	now := time.Unix(1e9, 0)
	hour := Words{From: now.Add(-time.Hour), To: now, Now: now, SampleType: "cpu", Unit: "nanoseconds"}
	cores := func(rated rate.Summary) rate.Reading { return rate.Reading{Summary: rated} }
	for _, test := range []struct {
		rate.Reading
		value, processes, coverage string
	}{
		{cores(rate.Summary{Rate: 1.2e9, PerProcess: 0.4e9, MeanProcesses: 3, Processes: 3, Covered: 600, Alive: 1800, Data: 600}), "1.20 cores", "3 processes, 0.40 cores each", "33 % of 10 min in 1 h"},
		{cores(rate.Summary{Rate: 0.5e9, PerProcess: 0.5e9, MeanProcesses: 1, Processes: 4, Covered: 3600, Alive: 3600, Data: 3600}), "0.50 cores", "1 process at a time of 4, 0.50 cores each", "100 %"},
		{cores(rate.Summary{MeanProcesses: 1, Processes: 1, Covered: 1, Alive: 3600, Data: 3600}), "0 cores", "1 process", "under 0.1 %"},
		{cores(rate.Summary{}), "-", "", ""},
	} {
		w := hour
		w.Reading = test.Reading
		assert.Equal(t, []string{test.value, test.processes, test.coverage, ""}, []string{w.Value(), w.Processes(), w.Coverage(), w.Age()})
	}
	heap := Words{Unit: "bytes", Now: now, Reading: rate.Reading{Snapshots: true, Sum: 3 << 20, Living: 2, At: uint64(now.UnixNano()) - 5e9}}
	assert.Equal(t, []string{"3 MiB", "now, of 2 processes", "", "5 s ago"}, []string{heap.Value(), heap.Processes(), heap.Coverage(), heap.Age()})
	heap.To = now.Add(-time.Hour)
	heap.At -= 3600e9
	assert.Equal(t, []string{"at the end, of 2 processes", "5 s before"}, []string{heap.Processes(), heap.Age()})
	assert.Equal(t, []string{"+1 MiB", "−1 MiB"}, []string{heap.Change(1 << 20), heap.Change(-1 << 20)})
	heap.Sum = math.MaxInt64
	assert.Equal(t, "≥ 8 EiB", heap.Value())
	heap.At = 0
	assert.Equal(t, []string{"-", "last"}, []string{heap.Value(), heap.Processes()}, "no snapshot states its time")
}
