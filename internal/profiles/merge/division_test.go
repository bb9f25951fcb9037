// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// compacting returns the options of a compactor whose slots have this length.
func compacting(slot uint64) *Options {
	options := defaultOptions()
	options.SlotLength, options.SlotByStart, options.Snapshots = time.Duration(slot), true, SnapshotsLatest
	return options
}

// sampled returns the interval of a process with a sample of each value.
func sampled(process int, start, duration uint64, values ...int64) pprofile.Profiles {
	pd := ofProcess(process, start, duration, 1)
	stacks := payloadtest.ManyStacks(len(values), 0)
	stacks.Dictionary().CopyTo(pd.Dictionary())
	from := payloadtest.First(stacks)
	p := payloadtest.First(pd)
	from.SampleType().CopyTo(p.SampleType())
	from.Samples().CopyTo(p.Samples())
	for i, v := range values {
		p.Samples().At(i).Values().FromRaw([]int64{v})
	}
	return pd
}

// largestRemainder divides a value in rational numbers.
func largestRemainder(value int64, weights []uint64) []int64 {
	total := new(big.Int)
	for _, w := range weights {
		total.Add(total, new(big.Int).SetUint64(w))
	}
	parts := make([]int64, len(weights))
	left := new(big.Rat).SetInt64(value)
	type rest struct {
		part int
		rat  *big.Rat
	}
	var rests []rest
	for i, w := range weights {
		exact := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(value), new(big.Int).SetUint64(w)), total)
		floor := new(big.Int).Div(exact.Num(), exact.Denom())
		parts[i] = floor.Int64()
		left.Sub(left, new(big.Rat).SetInt(floor))
		rests = append(rests, rest{i, exact.Sub(exact, new(big.Rat).SetInt(floor))})
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return b.rat.Cmp(a.rat) })
	for i := range left.Num().Int64() {
		parts[rests[i].part]++
	}
	return parts
}

// sums returns the sum of the samples and of the rows of each slot.
func sums(t *testing.T, pd pprofile.Profiles, slot uint64) (samples, rows map[uint64]int64) {
	t.Helper()
	samples, rows = map[uint64]int64{}, map[uint64]int64{}
	for _, rp := range pd.ResourceProfiles().All() {
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				at := uint64(p.Time()) / slot
				require.Equal(t, at, (max(uint64(p.Time()), uint64(p.Time())+p.DurationNano()-1))/slot, "it is in one slot")
				samples[at] += processes.Sum(p)
				all, err := processes.Of(pd.Dictionary(), processes.HashResource(rp.Resource().Attributes()), p, processes.Sum(p))
				require.NoError(t, err)
				for _, row := range all {
					require.Equal(t, at, row.Start/slot)
					require.Equal(t, at, max(row.Start, row.End-1)/slot)
					rows[at] += row.Value
				}
			}
		}
	}
	return samples, rows
}

// The sum of each slot is that of a division in rational numbers of each interval, and so are the rows of processes, whatever the values of
// samples, and also after a window of a gateway.
func TestCompactionDividesAtTheBordersOfSlots(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 60, 3000)) {
		r := rand.New(rand.NewPCG(seed, round))
		slot := 1 + r.Uint64N(100)
		want := map[uint64]int64{}
		profiles := 0
		window, gateway := NewWindow(compacting(slot)), NewWindow(anonymous(defaultOptions()))
		behind := r.IntN(2) == 0
		bySample := map[string]int64{}
		perProcess := map[int]uint64{} // the next start: intervals of a process do not overlap
		for range 1 + r.IntN(20) {
			process := r.IntN(4)
			if behind {
				process = len(perProcess)
			}
			start := max(1000, perProcess[process]) + r.Uint64N(300)
			duration := 1 + r.Uint64N(500)
			perProcess[process] = start + duration
			var values []int64
			for range r.IntN(40) {
				values = append(values, r.Int64N(1<<r.IntN(40)))
			}
			pd := sampled(process, start, duration, values...)
			total := int64(0)
			for i, v := range values {
				total += v
				bySample[fmt.Sprint(i)] += v
			}
			first, last := start/slot, (start+duration-1)/slot
			weights := make([]uint64, last-first+1)
			for i := range weights {
				from := max(start, (first+uint64(i))*slot)
				weights[i] = min(start+duration, (first+uint64(i)+1)*slot) - from
			}
			if len(weights) > maxParts {
				continue
			}
			profiles++
			for i, v := range largestRemainder(total, weights) {
				want[first+uint64(i)] += v
			}
			if behind {
				require.NoError(t, add(gateway, pd))
			} else {
				require.NoError(t, add(window, pd))
			}
		}
		if profiles == 0 {
			continue
		}
		if behind {
			merged := gateway.Emit("")
			if p := payloadtest.First(merged); uint64(p.Time())/slot+maxParts < 2000/slot {
				continue
			}
			require.NoError(t, add(window, merged))
		}
		out := window.Emit("")
		profiletest.RequireConforms(t, out)
		samples, rows := sums(t, out, slot)
		for at := range samples {
			require.Equal(t, want[at], samples[at], "round %d, slot %d of %d", round, at, slot)
			require.Equal(t, want[at], rows[at], "round %d, slot %d of %d", round, at, slot)
			delete(want, at)
		}
		for at, v := range want {
			require.Zero(t, v, "round %d, slot %d", round, at)
		}
	}
}

// Many small values do not all go into one slot, as they would if each were divided for itself, and each part is near its share.
func TestSmallValuesAreSpread(t *testing.T) {
	values := slices.Repeat([]int64{1, 2, 1000}, 300)
	out := merged(t, compacting(100), sampled(1, 1050, 160, values...))
	samples, _ := sums(t, out, 100)
	total := int64(300 * 1003)
	parts := largestRemainder(total, []uint64{50, 100, 10})
	assert.Equal(t, map[uint64]int64{10: parts[0], 11: parts[1], 12: parts[2]}, samples)
	for p := range sampletypes.ProfilesOf(out) {
		small := int64(0)
		for _, s := range p.Samples().All() {
			v := s.Values().At(0)
			if v < 3 {
				small += v
			} else {
				assert.InDelta(t, float64(1000*p.DurationNano())/160, float64(v), 1)
			}
		}
		assert.InDelta(t, float64(900*p.DurationNano())/160, float64(small), 30, "%d ns", p.DurationNano())
	}
}

// The covered time, the number of intervals and the Profiles' own times are divided as well.
func TestPartsCoverTheirTime(t *testing.T) {
	out := merged(t, compacting(100), sampled(1, 1050, 160, 160))
	rows, tables := rowsOf(t, out)
	require.Len(t, rows, 3)
	hash := hashOf(out)
	assert.Equal(t, processes.Row{Hash: hash, Start: 1050, End: 1100, Covered: 50, Value: 50, Profiles: 1, Processes: 1}, rows[0][hash])
	assert.Equal(t, processes.Row{Hash: hash, Start: 1100, End: 1200, Covered: 100, Value: 100, Processes: 1}, rows[1][hash])
	assert.Equal(t, processes.Row{Hash: hash, Start: 1200, End: 1210, Covered: 10, Value: 10, Processes: 1}, rows[2][hash])
	assert.Equal(t, 2, tables, "an interval begins in the first part")
	ids := map[pprofile.ProfileID]bool{}
	for p := range sampletypes.ProfilesOf(out) {
		ids[p.ProfileID()] = true
	}
	assert.Len(t, ids, 3)

	// Four intervals with gaps that a window has merged.
	var all []pprofile.Profiles
	for i := range uint64(4) {
		all = append(all, sampled(1, 1000+100*i, 50, 10))
	}
	rows, _ = rowsOf(t, merged(t, compacting(100), merged(t, defaultOptions(), all...)))
	require.Len(t, rows, 4)
	profiles, covered := 0, uint64(0)
	for _, of := range rows {
		require.Len(t, of, 1)
		for _, row := range of {
			profiles += row.Profiles
			covered += row.Covered
			assert.LessOrEqual(t, row.Profiles, 2)
		}
	}
	assert.Equal(t, 4, profiles)
	assert.Equal(t, uint64(200), covered)

	// An interval without samples covers all of its time.
	rows, _ = rowsOf(t, merged(t, compacting(100), ofProcess(1, 1050, 160, 0)))
	require.Len(t, rows, 3)
}

// Samples with timestamps go into the slots of these, and the others of the Profile are divided.
func TestTimestampsAreNotSpread(t *testing.T) {
	for _, drop := range []bool{false, true} {
		pd := sampled(1, 1050, 160, 16)
		samples := payloadtest.First(pd).Samples()
		for _, times := range [][]uint64{{1060, 1061, 1205}, {1150}, {1000, 5000}} {
			s := samples.AppendEmpty()
			samples.At(0).CopyTo(s)
			s.Values().FromRaw(nil)
			s.TimestampsUnixNano().FromRaw(times)
			for range times {
				s.Values().Append(100)
			}
		}
		options := compacting(100)
		options.DropTimestamps = drop
		w := NewWindow(options)
		require.NoError(t, add(w, pd))
		out := w.Emit("")
		got := map[uint64]int64{}
		for p := range sampletypes.ProfilesOf(out) {
			got[uint64(p.Time())] += processes.Sum(p)
		}
		assert.Equal(t, map[uint64]int64{1050: 300 + 5, 1100: 100 + 10, 1200: 200 + 1}, got, "drop_timestamps: %v", drop)
		rows := 0
		all, _ := rowsOf(t, out)
		for _, of := range all {
			rows += len(of)
		}
		assert.Equal(t, map[bool]int{false: 6, true: 3}[drop], rows)
	}
}

// The longest intervals become few parts, negative and large values keep their sums.
func TestExtremeDivisions(t *testing.T) {
	for _, values := range [][]int64{{5, -7, 100}, {math.MaxInt64}, {math.MaxInt64, 1, 5}, {-3}, {0, 0}, {math.MinInt64, 9}} {
		for _, duration := range []uint64{1000, 1 << 40, math.MaxUint64} {
			options := compacting(10)
			options.DropZeroSamples = false
			w := NewWindow(options)
			require.NoError(t, add(w, sampled(1, 1005, duration, values...)))
			out := w.Emit("")
			require.LessOrEqual(t, out.ProfileCount(), maxParts)
			require.Greater(t, out.ProfileCount(), maxParts/4)
			got, want := new(big.Int), new(big.Int)
			for p := range sampletypes.ProfilesOf(out) {
				for _, s := range p.Samples().All() {
					got.Add(got, big.NewInt(s.Values().At(0)))
				}
			}
			for _, v := range values {
				want.Add(want, big.NewInt(v))
			}
			require.Equal(t, want.String(), got.String(), "%v in %d", values, duration)
		}
	}
}

// What says nothing of time is not divided.
func TestWhatIsNotDivided(t *testing.T) {
	assert.Equal(t, 1, merged(t, compacting(100), sampled(1, 1000, 100, 5)).ProfileCount(), "in one slot")
	assert.Equal(t, 1, merged(t, compacting(100), sampled(1, 0, 500, 5)).ProfileCount(), "no time")
	snapshot := sampled(1, 1050, 500, 5)
	attribute := snapshot.Dictionary().AttributeTable()
	if attribute.Len() == 0 {
		attribute.AppendEmpty()
	}
	snapshot.Dictionary().StringTable().Append(attrkey.Temporality)
	a := attribute.AppendEmpty()
	a.SetKeyStrindex(int32(snapshot.Dictionary().StringTable().Len() - 1))
	a.Value().SetStr(sampletypes.Instant)
	payloadtest.First(snapshot).AttributeIndices().Append(int32(attribute.Len() - 1))
	out := merged(t, compacting(100), snapshot)
	assert.Equal(t, 1, out.ProfileCount())
	assert.Equal(t, pcommon.Timestamp(1050), payloadtest.First(out).Time())
}

func BenchmarkDivision(b *testing.B) {
	values := make([]int64, 10_000)
	for i := range values {
		values[i] = int64(i * 1_000_003 % 10_000_000)
	}
	for _, parts := range []uint64{1, 2, 60} {
		b.Run(fmt.Sprint(parts), func(b *testing.B) {
			pd := sampled(1, 1_000_000, parts*1000, values...)
			for b.Loop() {
				w := NewWindow(compacting(1000))
				require.NoError(b, add(w, pd))
			}
		})
	}
}
