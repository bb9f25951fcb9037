// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// TestOverviewAfterARestartIsQuick_V5: services have a file for each hour of a week, and each file
// a record for each minute.
func TestOverviewAfterARestartIsQuick_V5(t *testing.T) {
	services := profiletest.Rounds(t, 10, 1000)
	const hours = 7 * 24
	s := newSite(t)
	for i := range services {
		name := fmt.Sprintf("service-%04d", i)
		for hour := range hours {
			end := s.now.Add(-time.Duration(hour) * time.Hour)
			writeIndexed(t, s.dir, name, end.Add(-time.Hour), end)
		}
	}

	page := s.page("/")
	assert.Contains(t, page, fmt.Sprint(services, " services"))
	assert.Contains(t, page, "3.00 cores")
	assert.NotContains(t, page, "cannot be read")
	s.page("/?from=-24h")
}

// writeIndexed writes a file with the index of a CPU profile for each minute, whose records nobody can read.
func writeIndexed(t testing.TB, root, service string, from, to time.Time) {
	t.Helper()
	b, x, bounds := contents.NewBuilder(nil), &segment.Index{}, layout.Bounds{}
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		start, end := uint64(at.UnixNano()), uint64(at.Add(10*time.Second).UnixNano())
		summary := contents.Summary{
			Key:   contents.Key{Service: service, Type: "cpu", SampleType: "cpu", Unit: "nanoseconds"},
			Total: contents.Total{Start: start, Latest: start, End: end, Covered: uint64(10 * time.Second), Profiles: 1, Samples: 1000, Sum: 30e9},
		}
		summary.Rows = []processes.Row{{Hash: 1, Start: start, End: end, Covered: summary.Covered, Value: summary.Sum, Profiles: 1, Processes: 1}}
		entry := b.Add(&contents.Entry{Start: start, End: end, Samples: 1000, Summaries: []contents.Summary{summary}, Labels: &labels.Set{}})
		x.Records = append(x.Records, segment.Record{Offset: int64(len(x.Records)), Length: 1, Entry: entry})
		bounds.Add(start, end, to)
	}
	x.Tables = b.Tables()
	records := len(x.Records)
	content, err := segment.AppendIndex(bytes.Repeat([]byte("x"), records), x, int64(records))
	require.NoError(t, err)
	dir := filepath.Join(root, layout.GroupDir("service.name", service), to.UTC().Format(layout.HourPath))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	name := layout.WrittenBase(to.UTC().Format(layout.CreatedTime)+"-0123456789ab", &bounds, segment.Proto)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}
