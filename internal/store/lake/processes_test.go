// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

func writeProcesses(t *testing.T, pd pprofile.Profiles) []Process {
	t.Helper()
	var file bytes.Buffer
	w := newProcesses(&file, 16<<20, newCodec())
	require.NoError(t, w.Add(pd))
	require.NoError(t, w.Close())
	rows, err := parquet.Read[Process](bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.NoError(t, err)
	return rows
}

// TestEachProcessOfAMergedProfileHasARow: also with the value 0, and when the attribute that told processes apart is gone.
func TestEachProcessOfAMergedProfileHasARow(t *testing.T) {
	const minute = uint64(time.Minute)
	start := uint64(time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC).UnixNano())
	window := merge.NewWindow(&merge.Options{DropResourceAttributes: []string{"service.instance.id"}})
	for i, value := range []int64{7, 0, 5} {
		for part := range uint64(2) {
			pd := payloadtest.Interval(start+part*minute/2, minute/4, value)
			payloadtest.With(pd, "service.name", "checkout", "service.instance.id", fmt.Sprint("pod-", i))
			payload, err := merge.Check(pd, &merge.Options{DropResourceAttributes: []string{"service.instance.id"}})
			require.NoError(t, err)
			require.NoError(t, window.Add(payload))
		}
	}
	rows := writeProcesses(t, window.Emit(""))
	require.Len(t, rows, 3)
	values, hashes := map[int64]int{}, map[string]bool{}
	for i := range rows {
		row := &rows[i]
		values[row.Value]++
		hashes[row.Process] = true
		assert.Len(t, row.Process, 16)
		assert.Equal(t, []int64{int64(start), int64(start + 3*minute/4), int64(minute / 2), 1, 2}, []int64{row.TimeUnixNano, row.EndUnixNano, row.CoveredNano, row.Processes, row.Intervals})
		assert.Equal(t, int64(start/1000), row.Time)
		assert.Equal(t, []any{"checkout", "cpu", "nanoseconds", false, map[string]string{"service.name": "checkout"}}, []any{row.Service, row.SampleType, row.Unit, row.Snapshot, row.ResourceAttributes})
		assert.Empty(t, row.Attributes)
	}
	assert.Equal(t, map[int64]int{14: 1, 0: 1, 10: 1}, values)
	assert.Len(t, hashes, 3)
}

// TestARowOfSeveralProcesses: beyond the limit of processes of a Profile.
func TestARowOfSeveralProcesses(t *testing.T) {
	window := merge.NewWindow(&merge.Options{})
	for i := range 300 {
		pd := payloadtest.With(payloadtest.Interval(1e18, 1e9, 1), "service.name", "checkout")
		p := payloadtest.First(pd)
		p.SetProfileID(pprofile.ProfileID{byte(i), byte(i >> 8), 1})
		pd = payloadtest.With(pd, "service.instance.id", fmt.Sprint(i))
		payload, err := merge.Check(pd, &merge.Options{DropResourceAttributes: []string{"service.instance.id"}})
		require.NoError(t, err)
		require.NoError(t, window.Add(payload))
	}
	rows := writeProcesses(t, window.Emit(""))
	var total, processes, without int64
	for i := range rows {
		total, processes = total+rows[i].Value, processes+rows[i].Processes
		if rows[i].Process == "" {
			without++
		}
	}
	assert.Equal(t, []int64{300, 300, 1}, []int64{total, processes, without})
}

func TestSnapshotsAreLevels(t *testing.T) {
	at := uint64(time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC).UnixNano())
	pd := payloadtest.Snapshot("pod-1", at, 9)
	rows := writeProcesses(t, pd)
	require.Len(t, rows, 1)
	assert.True(t, rows[0].Snapshot)
	assert.Equal(t, []int64{int64(at), int64(at), 0, 9}, []int64{rows[0].TimeUnixNano, rows[0].EndUnixNano, rows[0].CoveredNano, rows[0].Value})
}
