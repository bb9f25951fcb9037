// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// TestOverviewAfterARestartIsQuick_V5: services have a file for each hour of a week, and each file
// a record for each minute.
func TestOverviewAfterARestartIsQuick_V5(t *testing.T) {
	services := profiletest.Rounds(t, 10, 1000)
	const hours = 7 * 24
	s := newSite(t)
	for i := range services {
		name := fmt.Sprintf("service-%04d", i)
		require.NoError(t, os.Mkdir(filepath.Join(s.dir, name), 0o700))
		for hour := range hours {
			end := s.now.Add(-time.Duration(hour) * time.Hour)
			writeIndexed(t, filepath.Join(s.dir, name), name, end.Add(-time.Hour), end)
		}
	}

	page := s.page("/")
	assert.Contains(t, page, "There are profiles of other times")
	assert.Contains(t, page, fmt.Sprint(services, " services"))
	assert.Contains(t, page, "3.00 cores")
	assert.NotContains(t, page, "cannot be read")
	s.page("/?from=-24h")
}

// writeIndexed writes an index with a CPU profile for each minute, beside a file that nobody can read.
func writeIndexed(t testing.TB, dir, service string, from, to time.Time) {
	t.Helper()
	content := []byte(strings.Repeat("x", int((to.Sub(from)+time.Minute-1)/time.Minute))) // a byte for each record
	b := recordfile.NewIndexBuilder(semaphore.NewWeighted(1 << 20))
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		summary := recordfile.Summary{
			Key: recordfile.Key{Service: service, Type: "cpu", SampleType: "cpu", Unit: "nanoseconds"},
			Total: recordfile.Total{
				Start: uint64(at.UnixNano()), Latest: uint64(at.UnixNano()), End: uint64(at.Add(10 * time.Second).UnixNano()),
				Covered: uint64(10 * time.Second), Profiles: 1, Samples: 1000, Sum: 30e9,
			},
		}
		b.Add(int64(at.Sub(from)/time.Minute), 1, []recordfile.Summary{summary}, nil)
	}
	index := b.Encode(int64(len(content)))
	name := recordfile.Name{Time: from, Sequence: 1, Format: recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd}}.String()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	require.NoError(t, os.WriteFile(path+recordfile.IndexSuffix, index, 0o600))
	require.NoError(t, os.Chtimes(path, to, to))
}
