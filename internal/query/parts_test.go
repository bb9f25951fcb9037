// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package query_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

// listed returns the rows of a record of which limit bytes may be decoded at once, and the services that were not.
func listed(t *testing.T, pd pprofile.Profiles, limit int64) (rows []query.Row, unread []string) {
	t.Helper()
	path := profiletest.WriteFile(t, "record.pb", profiletest.Proto(t, pd))
	s := query.Source{
		Files: []archive.File{{Path: path}}, Options: archive.Options{MaxMemory: 4 * limit, MaxRecord: 64 << 20, Setting: "max_memory"},
		Failed: func(err error) error {
			var failed *archive.Error
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, path, failed.File)
			assert.Equal(t, 1, failed.Record)
			require.Len(t, failed.Services, 1)
			assert.ErrorContains(t, err, "raise max_memory")
			unread = append(unread, failed.Services[0])
			return nil
		},
	}
	rows, err := s.List(t.Context(), &query.Selection{})
	require.NoError(t, err)
	return rows, unread
}

// TestALargeServiceHidesNoOther_V8: the record of all services does not fit into memory.
func TestALargeServiceHidesNoOther_V8(t *testing.T) {
	r := profiletest.NewRand(profiletest.Seed(t))
	for range profiletest.Rounds(t, 50, 2000) {
		pd := profiletest.GenerateProfiles(r)
		large := pd.ResourceProfiles().AppendEmpty()
		large.Resource().Attributes().PutStr("service.name", "large")
		p := large.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty()
		for range 10_000 { // more than 1 MiB when they are decoded
			p.Samples().AppendEmpty().Values().Append(1)
		}
		whole, unread := listed(t, pd, 1<<30)
		require.Empty(t, unread)

		var m wire.Meter
		_, err := m.Write(profiletest.Proto(t, pd))
		require.NoError(t, err)
		rows, unread := listed(t, pd, m.Size-1)
		assert.Empty(t, unread, "in parts")
		assert.Equal(t, whole, rows)

		rows, unread = listed(t, pd, m.Size/2)
		assert.Equal(t, []string{"large"}, unread)
		isLarge := func(row query.Row) bool { return row.Service == "large" }
		assert.Equal(t, slices.DeleteFunc(slices.Clone(whole), isLarge), rows)
	}
}
