// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestFailingCalls_E1 lets each call of the file system fail, alone, with the next
// ones, and until the end, and requires that what is readable is exactly what was
// acknowledged, and that nothing fails once the fault is gone.
func TestFailingCalls_E1(t *testing.T) {
	const size = 40
	full, _ := profiletest.Soak(t)
	for i, format := range allFormats {
		for syncMode, syncName := range map[Sync]string{SyncNone: "none", SyncInterval: "interval", SyncRecord: "record"} {
			// The ways to write differ little here: most get a part of the calls.
			step := 15
			switch {
			case full || format == allFormats[0] && syncMode == SyncRecord:
				step = 1
			case format == allFormats[0]:
				step = 4
			}
			first := (3*i+int(syncMode))%step + 1
			t.Run(formatName(format)+" sync "+syncName, func(t *testing.T) {
				t.Parallel()
				failing, acknowledged, readable := 0, 0, 0
				for _, kind := range []*faults{
					{to: 1},                            // one call fails
					{to: 1, short: true},               // one write is short, and says so
					{to: 1, short: true, silent: true}, // or does not
					{to: 3, short: true},
					{to: math.MaxInt32, short: true}, // until it is repaired
				} {
					for n := first; ; n += step {
						f := faults{from: n, to: n + kind.to, short: kind.short, silent: kind.silent, noSync: true}
						written, read := runWithFaults(t, &f, format, syncMode, size)
						failing, acknowledged, readable = failing+f.failed, acknowledged+written, readable+read
						if t.Failed() {
							t.Fatalf("calls from %d to %d failed, short %v, silent %v", f.from, f.to, f.short, f.silent)
						}
						if f.failed == 0 {
							require.Greater(t, n, 20)
							break
						}
					}
				}
				profiletest.Account(t, fmt.Sprintf("%d failing calls", failing), acknowledged, readable, 0)
			})
		}
	}
}

// runWithFaults gives how many records were acknowledged, and how many of them are there.
func runWithFaults(t *testing.T, f *faults, format Format, syncMode Sync, size int) (written, read int) {
	dir, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // one a run of many in a test
	require.NoError(t, err)
	var finishedRecords atomic.Int64 // files are closed concurrently
	options := Options{
		Format: format, Rotation: Rotation{MaxRecords: 3}, Sync: syncMode, SyncInterval: 1, Levels: 1, MaxGroups: 5,
		OpenDir:    f.openDir,
		FileClosed: func(f ClosedFile) { finishedRecords.Add(int64(f.Records)) },
	}
	w, err := openWriter(dir, options)
	if err != nil {
		require.Positive(t, f.failed)
		f.clear()
		w, err = openWriter(dir, options)
		require.NoError(t, err)
	}
	acknowledged := []int{}
	id := 0
	add := func() error {
		id++
		record := indexedRecord(format.Content, id, size)
		record.Group = []string{[]string{"a", "b"}[id/5%2]} // MaxOpen is 1: another group closes the file
		err := w.Append(record)
		if err == nil {
			acknowledged = append(acknowledged, id)
		}
		return err
	}
	for range 8 {
		if add() != nil {
			assert.Positive(t, f.failed)
		}
		if id%2 == 0 {
			w.Tick()
		}
		if id == 6 {
			w.Maintain()
		}
	}
	failed := f.failed
	f.clear()
	for range 4 {
		require.NoError(t, add(), "the fault is gone")
	}
	w.Tick()
	require.NoError(t, w.Close(), "the fault is gone")
	f.failed = failed

	var readable []int
	for _, group := range list(t, dir) {
		if group == probe {
			continue // its removal was the call that failed
		}
		readable = append(readable, readAll(t, filepath.Join(dir, group), size)...)
		names := list(t, filepath.Join(dir, group))
		for _, name := range names {
			of, isIndex := strings.CutSuffix(name, IndexSuffix) // it may be damaged
			parsed, ok := ParseName(of)
			assert.True(t, ok && !parsed.Partial && (!isIndex || slices.Contains(names, of)), "%s is left", name)
		}
	}
	assert.ElementsMatch(t, acknowledged, readable)
	assert.EqualValues(t, len(acknowledged), finishedRecords.Load())
	require.NoError(t, os.RemoveAll(dir))
	return len(acknowledged), len(readable)
}

// TestFileTooBig_E1: where files may not be larger than some size, a full one costs the
// record that met the limit, and what comes next is written.
func TestFileTooBig_E1(t *testing.T) {
	const size, fit, records = 1000, 3, 12
	dir := t.TempDir()
	length := int64(len(newRecord(OTLPProto, 1, size)))
	f := faults{short: true, before: func(c call) error {
		if c.end > fit*(4+length)+length/2 {
			return syscall.EFBIG
		}
		return nil
	}}
	w, err := openWriter(dir, Options{Format: Format{Content: OTLPProto}, OpenDir: f.openDir})
	require.NoError(t, err)
	var acknowledged []int
	for id := 1; id <= records; id++ {
		if err := w.Append(plainRecord(OTLPProto, id, size)); err != nil {
			require.ErrorIs(t, err, syscall.EFBIG)
			require.Zero(t, id%(fit+1))
			continue
		}
		acknowledged = append(acknowledged, id)
	}
	require.Len(t, acknowledged, records/(fit+1)*fit)
	require.NoError(t, w.Close())
	read := readAll(t, dir, size)
	require.Equal(t, acknowledged, read)
	profiletest.Account(t, "files of limited size", len(acknowledged), len(read), 0)
}
