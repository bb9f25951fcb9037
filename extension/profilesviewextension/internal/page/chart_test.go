// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/query"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
)

// TestBarsAreThoseOfASlowComputation: files overlap, and have Profiles in any order.
func TestBarsAreThoseOfASlowComputation(t *testing.T) {
	random, sel := rand.New(rand.NewPCG(1, 2)), &query.Selection{From: time.Unix(1000, 0), To: time.Unix(1100, 0)}
	for range 500 {
		key := contents.Key{Snapshot: random.Uint64N(2)}
		var all []contents.Total
		files := make([][]contents.Total, 1+random.IntN(5))
		for range random.IntN(100) {
			start, length := uint64(1000+random.IntN(100)), random.Uint64N(4)
			p := contents.Total{
				Start: start * 1e9, Latest: start * 1e9, End: (start + length) * 1e9, Covered: random.Uint64N(length+1) * 1e9, Sum: int64(1 + random.IntN(100)),
			}
			if key.Snapshot != 0 { // of which one is the latest
				p.Start += uint64(len(all))
			}
			all = append(all, p)
			i := random.IntN(len(files))
			files[i] = append(files[i], p)
		}
		files = slices.DeleteFunc(files, func(f []contents.Total) bool { return len(f) == 0 })
		for _, f := range files {
			slices.SortFunc(f, func(a, b contents.Total) int { return cmp.Compare(a.Start, b.Start) })
		}
		slices.SortFunc(files, func(a, b []contents.Total) int { return cmp.Compare(a[0].Start, b[0].Start) })
		visit := func(add func(profiles []contents.Total, next uint64)) {
			for i, f := range files {
				next := uint64(math.MaxUint64)
				if i+1 < len(files) {
					next = files[i+1][0].Start
				}
				add(f, next)
			}
		}

		sums := newTotals(&room{limit: 1 << 20})
		visit(func(f []contents.Total, next uint64) { require.NoError(t, sums.add(&key, f, next)) })
		if len(all) == 0 {
			continue
		}
		total := sums.sorted(sel.To)[0]
		c := newChart(total, sel)
		visit(func(f []contents.Total, next uint64) { c.add(&key, f, next) })
		require.Empty(t, c.levels)

		covered := func(from, to uint64) (seconds int, sum, last float64) {
			var is [200]bool
			latest := uint64(0)
			for _, p := range all {
				if p.Start < from || p.Start >= to {
					continue
				}
				if sum += float64(p.Sum); p.Start >= latest {
					latest, last = p.Start, float64(p.Sum)
				}
				for s := p.Start / 1e9; s < (p.Start+p.Covered)/1e9; s++ {
					is[s-1000] = true
				}
			}
			for _, is := range is {
				if is {
					seconds++
				}
			}
			return seconds, sum, last
		}
		for i, value := range c.values() {
			from := uint64(sel.From.Add(time.Duration(i) * c.bar).UnixNano())
			seconds, sum, last := covered(from, from+uint64(c.bar))
			if seconds == 0 {
				seconds = int(min(c.bar, sel.To.Sub(time.Unix(0, int64(from)))).Seconds())
			}
			switch {
			case sum == 0:
				assert.True(t, math.IsNaN(value))
			case total.Snapshot:
				require.InDelta(t, last, value, 0)
			default:
				require.InDelta(t, sum/float64(seconds), value, 0)
			}
		}
		if measured, _, _ := covered(0, math.MaxUint64); !total.Snapshot {
			require.Equal(t, time.Duration(measured)*time.Second, total.Measured)
		}
	}
}

func TestOverviewTakesMemoryByBarsNotByProfiles_V2(t *testing.T) {
	s := newSite(t)
	const hours = 7 * 24
	for hour := range hours {
		end := s.now.Add(-time.Duration(hour) * time.Hour)
		writeIndexed(t, s.dir, "checkout", end.Add(-time.Hour), end)
	}
	s.Page.settings.MaxMemory = 128 << 10 // a query has 48 KiB, less than 5 bytes for each Profile
	assert.Contains(t, s.page("/?from=-7d"), "3.00 cores")

	var instances []sent
	for i := range 400 {
		instances = append(instances, heap("checkout", string(rune('a'+i)), s.now.Add(-time.Minute), 1))
	}
	s.write(payload(t, instances...))
	w := s.get("/?from=-7d")
	assert.Equal(t, http.StatusUnprocessableEntity, w.Code)
	assert.Contains(t, w.Body.String(), "select less, by service, type or time")
	assert.Contains(t, s.page("/?from=-7d&type=cpu"), "3.00 cores")
}
