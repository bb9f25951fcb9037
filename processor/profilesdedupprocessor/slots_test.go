// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/processes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

func TestManySlotsCloseWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		p, metric := newCounted(t, &next, func(c *Config) { c.Window = time.Second })
		for n := range maxSlots - 1 {
			for range 2 {
				require.NoError(t, p.ConsumeProfiles(t.Context(), second(n, 1)))
			}
		}
		synctest.Wait()
		require.Empty(t, next.windows())
		require.NoError(t, p.ConsumeProfiles(t.Context(), second(1000, 1)))
		synctest.Wait()
		require.Len(t, next.windows(), 1)
		require.Equal(t, maxSlots, next.windows()[0].ProfileCount())
		require.EqualValues(t, 1, metric("flushes", string(reasonSlots)))

		// Also while others are being sent.
		release := make(chan struct{})
		next.answers(func(int) error { <-release; return nil })
		for n := range 3 * maxSlots {
			require.NoError(t, p.ConsumeProfiles(t.Context(), second(n, 1)))
		}
		require.EqualValues(t, 4, metric("flushes", string(reasonSlots)))
		close(release)
		synctest.Wait()
		require.Len(t, next.windows(), 4)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, next.windows(), 4)
		require.EqualValues(t, 2*maxSlots-1+3*maxSlots, next.total())
	})
}

// Profiles without samples cover their time: they are sent, and merge with others.
func TestProfilesWithoutSamplesAreSent(t *testing.T) {
	for window, want := range map[time.Duration]int{0: 2, time.Second: 3} { // without a window there are no slots
		synctest.Test(t, func(t *testing.T) {
			var next downstream
			p := newTestProcessor(t, &next, func(c *Config) { c.Window = window })
			idle := func(n int) pprofile.Profiles {
				pd := second(n, 0)
				payloadtest.First(pd).Samples().RemoveIf(func(pprofile.Sample) bool { return true })
				return pd
			}
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(idle(0), "service.name", "idle")))
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.InOne(t, second(0, 7), idle(1))))
			time.Sleep(time.Minute)
			require.NoError(t, p.Shutdown(t.Context()))
			profiles, covered, sum := 0, uint64(0), int64(0)
			for _, pd := range next.windows() {
				require.Positive(t, pd.SampleCount(), "else the Collector's otlp receiver drops it")
				for p := range sampletypes.ProfilesOf(pd) {
					profiles++
					covered += p.DurationNano()
					sum += processes.Sum(p)
				}
			}
			require.Equal(t, want, profiles)
			require.Equal(t, 3*uint64(time.Second-1), covered)
			require.EqualValues(t, 7, sum)
		})
	}
}
