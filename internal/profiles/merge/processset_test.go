// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// anonymous drops what tells processes apart.
func anonymous(options *Options) *Options {
	options.DropResourceAttributes = []string{"service.instance.id"}
	return options
}

// ofProcess returns an interval of a process without samples if value is 0.
func ofProcess(process int, start, duration uint64, value int64) pprofile.Profiles {
	pd := payloadtest.With(payloadtest.Interval(start, duration, value), "service.name", "checkout", "service.instance.id", fmt.Sprint(process))
	if value == 0 {
		payloadtest.First(pd).Samples().RemoveIf(func(pprofile.Sample) bool { return true })
	}
	return pd
}

func hashOf(pd pprofile.Profiles) uint64 {
	return processes.HashResource(pd.ResourceProfiles().At(0).Resource().Attributes())
}

// rowsOf returns the rows of all Profiles of pd by process, and whether there is an attribute.
func rowsOf(t testing.TB, pd pprofile.Profiles) (all []map[uint64]processes.Row, tables int) {
	t.Helper()
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				rows, err := processes.Of(pd.Dictionary(), processes.HashResource(rp.Resource().Attributes()), p, processes.Sum(p))
				require.NoError(t, err)
				of := map[uint64]processes.Row{}
				for _, row := range rows {
					of[row.Hash] = row
				}
				require.Len(t, of, len(rows))
				all = append(all, of)
				if processes.Find(pd.Dictionary(), p) >= 0 {
					tables++
				}
			}
		}
	}
	return all, tables
}

// slowProcess has each nanosecond that a process covers.
type slowProcess struct {
	start, end uint64
	covered    map[uint64]bool
	value      int64
	profiles   int
}

// The table has each process's time and value, through a window whose resources lose what tells processes apart, as exact as a count
// of nanoseconds, and through a second window after several of these.
func TestProcessesKeepTheirTimesThroughWindows(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 40, 2000)) {
		r := rand.New(rand.NewPCG(seed, round))
		all := map[uint64]*slowProcess{}
		count := 1 + r.IntN(40)
		options := anonymous(defaultOptions())
		second := NewWindow(options)
		intervals := 0
		for range 1 + r.IntN(4) {
			first := NewWindow(options)
			inFirst := map[uint64]*slowProcess{}
			for range 1 + r.IntN(120) {
				start, length, value := 1+r.Uint64N(1000), 1+r.Uint64N(60), int64(r.IntN(50))
				pd := ofProcess(r.IntN(count), start, length, value)
				for _, of := range []map[uint64]*slowProcess{all, inFirst} {
					p := of[hashOf(pd)]
					if p == nil {
						p = &slowProcess{start: start, covered: map[uint64]bool{}}
						of[hashOf(pd)] = p
					}
					p.start, p.end = min(p.start, start), max(p.end, start+length)
					p.value += value
					p.profiles++
					for at := start; at < start+length; at++ {
						p.covered[at] = true
					}
				}
				intervals++
				require.NoError(t, add(first, pd))
			}
			out := first.Emit("")
			profiletest.RequireConforms(t, out)
			rows, _ := rowsOf(t, out)
			require.Len(t, rows, 1)
			require.Len(t, rows[0], len(inFirst))
			for hash, p := range inFirst {
				require.Equal(t, processes.Row{
					Hash: hash, Start: p.start, End: p.end, Covered: uint64(len(p.covered)), Value: p.value, Profiles: p.profiles, Processes: 1,
				}, rows[0][hash], "round %d", round)
			}
			require.NoError(t, add(second, out))
		}
		rows, _ := rowsOf(t, second.Emit(""))
		require.Len(t, rows[0], len(all))
		for hash, p := range all {
			row := rows[0][hash]
			require.GreaterOrEqual(t, row.Covered, uint64(len(p.covered)))
			require.LessOrEqual(t, row.Covered, p.end-p.start)
			row.Covered = 0
			require.Equal(t, processes.Row{
				Hash: hash, Start: p.start, End: p.end, Value: p.value, Profiles: p.profiles, Processes: 1,
			}, row, "round %d", round)
		}
	}
}

// A process with more gaps than are known one by one covers at most its time.
func TestManyGaps(t *testing.T) {
	w := NewWindow(anonymous(defaultOptions()))
	for i := range uint64(1000) {
		require.NoError(t, add(w, ofProcess(1, 1+10*((i*617)%1000), 4, 1)))
	}
	rows, _ := rowsOf(t, w.Emit(""))
	for _, row := range rows[0] {
		assert.Equal(t, uint64(4000), row.Covered)
		assert.Equal(t, int64(1000), row.Value)
	}
	assert.Less(t, w.Size(), 100_000)
}

// The rest of the processes is one row, and counted once each.
func TestMoreProcessesThanRows(t *testing.T) {
	const count = 1000
	w := NewWindow(anonymous(defaultOptions()))
	for i := range uint64(2 * count) {
		require.NoError(t, add(w, ofProcess(int(i%count), 1+i, 10, 3)))
	}
	out := w.Emit("")
	rows, _ := rowsOf(t, out)
	require.Len(t, rows[0], processes.MaxRows+1)
	assert.Equal(t, count-processes.MaxRows, rows[0][processes.Rest].Processes)
	sum := int64(0)
	for _, row := range rows[0] {
		sum += row.Value
	}
	assert.Equal(t, int64(3*2*count), sum)
	table := payloadtest.First(out).AttributeIndices()
	size := out.Dictionary().AttributeTable().At(int(table.At(table.Len() - 1))).Value().Bytes().Len()
	assert.Less(t, size, 30*processes.MaxRows)
}

// A Profile has a table only if its resource does not say as much.
func TestWhatNeedsATable(t *testing.T) {
	tables := func(options *Options, payloads ...pprofile.Profiles) int {
		_, tables := rowsOf(t, merged(t, options, payloads...))
		return tables
	}
	assert.Zero(t, tables(defaultOptions(), ofProcess(1, 100, 10, 5)))
	assert.Zero(t, tables(defaultOptions(), ofProcess(1, 100, 10, 0)))
	assert.Zero(t, tables(defaultOptions(), ofProcess(1, 100, 10, 5), ofProcess(2, 100, 10, 5)))
	assert.Equal(t, 1, tables(anonymous(defaultOptions()), ofProcess(1, 100, 10, 5)))
	assert.Equal(t, 1, tables(defaultOptions(), ofProcess(1, 100, 10, 5), ofProcess(1, 110, 10, 5)))
	assert.Zero(t, tables(defaultOptions(), payloadtest.Snapshot("a", 100, 10), payloadtest.Snapshot("a", 200, 10)), "they are kept")
	latest := defaultOptions()
	latest.Snapshots = SnapshotsLatest
	assert.Zero(t, tables(latest, payloadtest.Snapshot("a", 100, 10), payloadtest.Snapshot("a", 200, 20)))

	delta, err := Delta(payloadtest.Interval(200, 0, 10), payloadtest.Interval(100, 0, 4), func(string) bool { return true })
	require.NoError(t, err)
	rows, count := rowsOf(t, delta)
	assert.Zero(t, count)
	assert.Equal(t, processes.Row{Hash: hashOf(delta), Start: 100, End: 200, Covered: 100, Value: 6, Profiles: 1, Processes: 1}, rows[0][hashOf(delta)])
}

// Of the snapshots of two processes that become one, the table has the latest ones.
func TestTableOfLatestSnapshots(t *testing.T) {
	options := anonymous(defaultOptions())
	options.Snapshots = SnapshotsLatest
	snapshot := func(process int, time uint64, value int64) pprofile.Profiles {
		pd := ofProcess(process, time, 0, value)
		pd.Dictionary().StringTable().SetAt(1, "inuse_space")
		return pd
	}
	a, b := snapshot(1, 300, 10), snapshot(2, 200, 7)
	rows, _ := rowsOf(t, merged(t, options, snapshot(1, 100, 99), b, a))
	require.Len(t, rows, 1)
	assert.Equal(t, map[uint64]processes.Row{
		hashOf(a): {Hash: hashOf(a), Start: 300, End: 300, Value: 10, Profiles: 1, Processes: 1},
		hashOf(b): {Hash: hashOf(b), Start: 200, End: 200, Value: 7, Profiles: 1, Processes: 1},
	}, rows[0])
}

// A table is no part of what a Profile is: it has the same ID and merges with others, whatever their tables.
func TestTableIsNotPartOfTheIdentity(t *testing.T) {
	options := anonymous(defaultOptions())
	a, b := merged(t, options, ofProcess(1, 100, 10, 5)), merged(t, options, ofProcess(2, 100, 10, 5))
	assert.Equal(t, payloadtest.First(a).ProfileID(), payloadtest.First(b).ProfileID())
	all := merged(t, defaultOptions(), a, b, payloadtest.With(payloadtest.Interval(100, 10, 5), "service.name", "checkout"))
	rows, tables := rowsOf(t, all)
	require.Len(t, rows, 1)
	assert.Equal(t, 1, tables)
	assert.Len(t, rows[0], 3)
	assert.Equal(t, 1, payloadtest.First(all).AttributeIndices().Len())
	assert.NotContains(t, payloadtest.First(a).AttributeIndices().AsRaw(), int32(0))
}

// A malformed table is ignored: its Profile is that of its resource, and is kept.
func TestMalformedTableIsIgnored(t *testing.T) {
	options := anonymous(defaultOptions())
	for _, value := range []any{[]byte{}, []byte{1, 2, 3}, []byte{9}, "text", int64(5), nil, []any{"x"}} {
		pd := merged(t, options, ofProcess(1, 100, 10, 5))
		attributes := pd.Dictionary().AttributeTable()
		require.NoError(t, attributes.At(attributes.Len()-1).Value().FromRaw(value))
		out := merged(t, defaultOptions(), pd)
		rows, tables := rowsOf(t, out)
		assert.Zero(t, tables)
		assert.Equal(t, map[uint64]processes.Row{
			hashOf(out): {Hash: hashOf(out), Start: 100, End: 110, Covered: 10, Value: 5, Profiles: 1, Processes: 1},
		}, rows[0], "%v", value)
	}
}

// If samples were removed from a Profile since its table was made, its rows have less, too. A Profile that mixes shapes becomes several, each of
// which has the time of its processes, and their values together.
func TestTableFollowsTheSamples(t *testing.T) {
	options := anonymous(defaultOptions())
	pd := merged(t, options, ofProcess(1, 100, 10, 30), ofProcess(2, 104, 10, 10))
	p := payloadtest.First(pd)
	p.Samples().At(0).Values().SetAt(0, 20)
	event := p.Samples().AppendEmpty()
	event.Values().Append(8)
	event.TimestampsUnixNano().Append(105)
	rows, _ := rowsOf(t, merged(t, defaultOptions(), pd))
	require.Len(t, rows, 2)
	values := map[int64]int{}
	for _, of := range rows {
		require.Len(t, of, 2)
		for _, row := range of {
			values[row.Value]++
			assert.Equal(t, uint64(10), row.Covered)
		}
	}
	assert.Equal(t, map[int64]int{15: 1, 5: 1, 6: 1, 2: 1}, values)
}

// What shares the attribute with a table does not take more memory than is counted before it is added.
func TestSharedTableIsCounted(t *testing.T) {
	options := anonymous(defaultOptions())
	var all []pprofile.Profiles
	for i := range processes.MaxRows {
		all = append(all, ofProcess(i, uint64(time.Hour), 10, 5))
	}
	pd := merged(t, options, all...)
	profiles := pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	for i := range 500 {
		p := profiles.AppendEmpty()
		profiles.At(0).CopyTo(p)
		p.SetPeriod(int64(i + 1))
	}
	payload, err := Check(pd, options)
	require.NoError(t, err)
	w := NewWindow(options)
	require.NoError(t, w.Add(payload))
	assert.Greater(t, payload.Repeated, w.Size()/2)
	assert.Len(t, sampletypesOf(w.Emit("")), 501)
}

func sampletypesOf(pd pprofile.Profiles) (all []pprofile.Profile) {
	for p := range sampletypes.ProfilesOf(pd) {
		all = append(all, p)
	}
	return all
}
