// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// unreliable is a next consumer that is slow. For five minutes it fails half of all calls, and all in the third.
type unreliable struct {
	mu        sync.Mutex
	r         *rand.Rand
	begin     time.Time
	permanent bool           // some errors are
	accepted  map[string]int // how often, by id
}

func (u *unreliable) consume(ctx context.Context, pd pprofile.Profiles) error {
	u.mu.Lock()
	answer, takes := u.r.IntN(10), time.Duration(u.r.IntN(1500))*time.Millisecond
	u.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	switch past := time.Since(u.begin); {
	case past > 5*time.Minute:
	case past > 2*time.Minute && past < 3*time.Minute || answer < 4:
		return errors.New("unavailable")
	case answer == 4 && u.permanent:
		return consumererror.NewPermanent(errors.New("never"))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for p := range sampletypes.ProfilesOf(pd) {
		u.accepted[p.ProfileID().String()]++
	}
	return nil
}

// ofNumbers is a payload with a Profile of one sample for each number, of one of three
// services. Profiles of different numbers do not merge.
func ofNumbers(numbers []int) pprofile.Profiles {
	pd := pprofile.NewProfiles()
	pd.Dictionary().StringTable().Append("", "cpu", "nanoseconds")
	for _, n := range numbers {
		p := payloadtest.With(payloadtest.Interval(100, 10, 1), "service.name", fmt.Sprint(n%3))
		rp := pd.ResourceProfiles().AppendEmpty()
		p.ResourceProfiles().At(0).CopyTo(rp)
		rp.ScopeProfiles().At(0).Scope().SetName(fmt.Sprint(n))
		rp.ScopeProfiles().At(0).Profiles().At(0).SetProfileID(pprofile.ProfileID{byte(n), 1})
	}
	return pd
}

// Each incoming Profile is sent, a duplicate or dropped, although clients give up and retry, and
// the next consumer accepts one payload of a window and rejects another. No acknowledged Profile
// is lost, and none is sent twice.
func TestEverythingIsCountedOnce_P8_P13(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 3, 300)) {
		for name, change := range map[string]func(*Config){
			"no window":  func(c *Config) { c.Window = 0 },
			"on_flush":   onFlush,
			"on_receive": func(c *Config) { c.Window = time.Second },
		} {
			for _, permanent := range []bool{false, true} {
				t.Run(fmt.Sprint(round, name, permanent), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						next := &unreliable{
							r: rand.New(rand.NewPCG(seed, round)), begin: time.Now(),
							permanent: permanent, accepted: map[string]int{},
						}
						p, metric := newCounted(t, nil, func(c *Config) {
							c.SplitBy, c.DuplicateTTL = []string{"service.name"}, time.Hour
							change(c)
						})
						p.next = nextFunc(next.consume)
						var wg sync.WaitGroup
						var mu sync.Mutex
						acknowledged := map[int]bool{}
						for sender := range uint64(30) {
							r := rand.New(rand.NewPCG(seed+round, sender))
							numbers := r.Perm(60)[:1+r.IntN(4)]
							wg.Go(func() {
								time.Sleep(time.Duration(r.IntN(280_000)) * time.Millisecond)
								for err := context.Canceled; err != nil; {
									ctx, cancel := context.WithTimeout(t.Context(), time.Duration(500+r.IntN(8000))*time.Millisecond)
									err = p.ConsumeProfiles(ctx, ofNumbers(numbers))
									cancel()
									time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
								}
								mu.Lock()
								defer mu.Unlock()
								for _, n := range numbers {
									acknowledged[n] = true
								}
							})
						}
						wg.Wait()
						time.Sleep(time.Hour)
						require.NoError(t, p.Shutdown(t.Context()))
						lost := 0
						for n := range acknowledged {
							times := next.accepted[pprofile.ProfileID{byte(n), 1}.String()]
							assert.LessOrEqual(t, times, 1)
							lost += 1 - times
						}
						dropped := metric("dropped_profiles", "")
						profiletest.Account(t, fmt.Sprintf("%d duplicates", metric("duplicate_profiles", "")), int(metric("incoming_profiles", "")-metric("duplicate_profiles", "")), int(metric("outgoing_profiles", "")), int(dropped))
						if name == "on_receive" {
							assert.LessOrEqual(t, int64(lost), dropped, "a dropped Profile may have been retried")
						} else {
							assert.Zero(t, lost)
						}
						assert.Equal(t, metric("incoming_profiles", ""),
							metric("outgoing_profiles", "")+metric("duplicate_profiles", "")+dropped)
						assert.Equal(t, metric("incoming_samples", ""),
							metric("outgoing_samples", "")+metric("duplicate_samples", "")+metric("dropped_samples", ""))
					})
				})
			}
		}
	}
}

// A superseded snapshot is counted once, whether or not its window is accepted.
func TestSupersededIsCountedOnce_P14(t *testing.T) {
	for _, test := range []struct {
		window              time.Duration
		answer              func(int) error
		superseded, dropped int64
	}{
		{time.Hour, nil, 9, 0},
		{time.Hour, permanently, 9, 1},
		{0, nil, 9, 0},
		{0, unavailable, 0, 0},
	} {
		p, metric := newCounted(t, &downstream{answer: test.answer}, func(c *Config) { c.Snapshots, c.Window = string(merge.SnapshotsLatest), test.window })
		all := payloadtest.Snapshot("a", 1, 1)
		for i := range uint64(9) {
			all = payloadtest.InOne(t, all, payloadtest.Snapshot("a", i+2, 1))
		}
		err := p.ConsumeProfiles(t.Context(), all)
		require.Equal(t, test.window == 0 && test.answer != nil, err != nil)
		_ = p.Shutdown(t.Context())
		require.Equal(t, test.superseded, metric("dropped_profiles", string(reasonSuperseded)))
		require.Equal(t, test.dropped, metric("dropped_profiles", string(reasonPermanent)))
	}
}
