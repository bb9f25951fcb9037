// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// The file of an hour has timestamps. That of a day has the same sums, the values that timestamps without any stand
// for among them, and each Profile says that its timestamps are gone.
func TestTheDayDropsTimestampsAndSaysSo(t *testing.T) {
	d := newDirectory(t)
	w := d.open()
	for id := range 2 {
		pd := newPayload("checkout", id, d.now.Add(-time.Minute), d.now)
		s := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().At(0)
		times := []uint64{uint64(d.now.Add(-time.Second).UnixNano()), uint64(d.now.Add(-time.Minute).UnixNano()), uint64(d.now.UnixNano() - 1)}
		s.TimestampsUnixNano().FromRaw(times)
		s.Values().FromRaw([]int64{3, 4, 5})
		if id == 1 {
			s.Values().FromRaw(nil)
		}
		entry, err := contents.Describe(pd)
		require.NoError(t, err)
		record := newRecord(t, d.format, "checkout", id, d.now.Add(-time.Minute), d.now)
		record.Entry = entry
		record.Data, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd)
		require.NoError(t, err)
		require.NoError(t, w.Append(record))
	}
	require.NoError(t, w.Close())
	type state struct {
		values, timestamps int64
		stated             bool
	}
	read := func() (all map[string]state) {
		all = map[string]state{}
		segments, err := openStore(t, d.dir).Live(t.Context(), time.Time{}, begin.AddDate(1, 0, 0), nil)
		require.NoError(t, err)
		for _, seg := range segments {
			x, err := seg.Index(t.Context())
			require.NoError(t, err)
			for data, err := range seg.Records(t.Context(), x, x.Records) {
				if _, damaged := errors.AsType[*segment.DamageError](err); damaged {
					continue
				}
				require.NoError(t, err)
				pd, err := store.Decode(seg.Format, data, 1<<20)
				require.NoError(t, err)
				for _, p := range profiletest.Expand(t, pd) {
					for _, s := range p.Samples {
						name := s.Stack[0].Lines[0].Function
						to := all[name]
						to.values += s.Sum.Int64()
						to.timestamps += int64(len(s.Points))
						to.stated = expand.Value(p.Attributes, attrkey.TimestampsDropped) == true
						all[name] = to
					}
				}
			}
		}
		return all
	}
	kept := map[string]state{"function-0": {12, 3, false}, "function-1": {3, 3, false}}
	require.Equal(t, kept, read())
	d.now = begin.Add(2 * time.Hour)
	d.compact()
	require.Equal(t, [3]int{0, 1, 0}, d.levels())
	require.Equal(t, kept, read())
	d.now = begin.Add(30 * time.Hour)
	d.compact()
	require.Equal(t, [3]int{0, 0, 1}, d.levels())
	require.Equal(t, map[string]state{"function-0": {12, 0, true}, "function-1": {3, 0, true}}, read())
}
