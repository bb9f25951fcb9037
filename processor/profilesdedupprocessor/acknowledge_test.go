// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// Profiles are not duplicates if resource, scope or sample type differ, or if they are in one
// payload. A Profile without an ID is never a duplicate.
func TestDistinctProfilesAreNoDuplicates_P13(t *testing.T) {
	var next downstream
	p := newTestProcessor(t, &next, func(c *Config) { c.Window = 0 })
	change := []func(pprofile.Profiles){
		func(pprofile.Profiles) {},
		func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("a", "b") },
		func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).SetSchemaUrl("s") },
		func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetName("n") },
		func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().SetVersion("n") },
		func(pd pprofile.Profiles) {
			pd.ResourceProfiles().At(0).ScopeProfiles().At(0).Scope().Attributes().PutInt("n", 1)
		},
		func(pd pprofile.Profiles) { pd.ResourceProfiles().At(0).ScopeProfiles().At(0).SetSchemaUrl("s") },
		func(pd pprofile.Profiles) { payloadtest.Only(t, pd).SampleType().SetTypeStrindex(2) },
		func(pd pprofile.Profiles) { payloadtest.Only(t, pd).SampleType().SetUnitStrindex(1) },
		func(pd pprofile.Profiles) { payloadtest.Only(t, pd).SetProfileID(pprofile.ProfileID{9}) },
	}
	for round := range 2 {
		for _, f := range change {
			pd := identified(1, 1)
			f(pd)
			require.NoError(t, p.ConsumeProfiles(t.Context(), pd))
			require.EqualValues(t, 1, payloadtest.Only(t, pd).Samples().At(0).Values().At(0))
		}
		require.EqualValues(t, len(change), next.total(), "round %d", round)
	}
	twice := identified(7, 1)
	profiles := twice.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles()
	profiles.At(0).CopyTo(profiles.AppendEmpty())
	for range 2 {
		require.NoError(t, p.ConsumeProfiles(t.Context(), twice))
	}
	require.EqualValues(t, len(change)+2, next.total())
	for range 2 {
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1)))
	}
	require.EqualValues(t, len(change)+4, next.total())
	require.NoError(t, p.Shutdown(t.Context()))
}

// After a failure, the IDs of dropped Profiles are removed, so that a retry is accepted.
func TestFailureForgetsDuplicates_P13(t *testing.T) {
	for _, window := range []time.Duration{0, time.Second} {
		for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
			synctest.Test(t, func(t *testing.T) {
				next := downstream{answer: permanently}
				p := newTestProcessor(t, &next, func(c *Config) {
					c.Window, c.Acknowledge = window, acknowledge
				})
				err := p.ConsumeProfiles(t.Context(), identified(1, 5))
				require.Equal(t, window == 0 || acknowledge == acknowledgeOnFlush, err != nil)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				next.answers(nil)
				for range 2 {
					require.NoError(t, p.ConsumeProfiles(t.Context(), identified(1, 5)))
				}
				require.NoError(t, p.Shutdown(t.Context()))
				require.EqualValues(t, 5, next.total())
			})
		}
	}
}

// The memory for acknowledged keys is bounded, and released.
func TestDuplicatesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSeenProfiles(time.Minute, 100*acknowledgedSize)
		key := func(i int) merge.Key { return merge.Key{byte(i), byte(i >> 8), 1} }
		for i := range 1000 {
			d.acknowledge(&outcome{}, key(i))
			require.LessOrEqual(t, d.size(), 100*acknowledgedSize)
		}
		known := func(i int) bool {
			unique, _ := d.unique(&merge.Payload{Profiles: []merge.Profile{{Key: key(i)}}})
			return unique.profiles == 0
		}
		require.False(t, known(899), "the oldest are evicted first")
		require.True(t, known(900))
		require.True(t, known(999))
		failed := &outcome{keys: []merge.Key{{2}}}
		d.acknowledge(failed, failed.keys...)
		d.remove(failed)
		require.Equal(t, 99*acknowledgedSize, d.size())
		time.Sleep(time.Minute + time.Second)
		require.False(t, known(999))
		require.Zero(t, d.size())
	})
}

// A dropped window does not remove IDs that a later one has acknowledged.
func TestFailureForgetsOnlyItsOwnDuplicates_P13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		rejected := false
		next := downstream{answer: func(int) error {
			switch {
			case time.Since(begin) < 90*time.Second:
				return errors.New("away")
			case !rejected:
				rejected = true
				return consumererror.NewPermanent(errors.New("never"))
			}
			return nil
		}}
		p := newTestProcessor(t, &next, func(c *Config) {
			c.DuplicateTTL, c.Window = time.Minute, time.Second
			c.RetryOnFailure.InitialInterval, c.RetryOnFailure.MaxInterval = 10*time.Second, 10*time.Second
		})
		send := func() { require.NoError(t, p.ConsumeProfiles(t.Context(), identified(1, 1))) }
		send()
		time.Sleep(85 * time.Second) // longer than duplicate_ttl
		send()
		time.Sleep(50 * time.Second) // the first gets a permanent error, the second is accepted
		synctest.Wait()
		require.EqualValues(t, 1, next.total())
		send() // within duplicate_ttl of the second
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 1, next.total())
	})
}
