// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
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

// Profiles without samples are not sent, nor are payloads of only such Profiles.
func TestEmptyProfilesAreCounted(t *testing.T) {
	for _, window := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var next downstream
			p, metric := newCounted(t, &next, func(c *Config) { c.Window = window })
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.InOne(t, second(0, 0), second(100, 0))))
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Zero(t, next.attempts)
			empty := metric("empty_profiles", "")
			require.Positive(t, empty)

			of := func(service string, value int64) pprofile.Profiles {
				return payloadtest.With(second(100, value), "service.name", service)
			}
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.InOne(t, payloadtest.InOne(t, of("idle", 0), of("idle, too", 0)), of("busy", 1))))
			require.NoError(t, p.Shutdown(t.Context()))
			require.Equal(t, 1, next.attempts)
			require.Equal(t, 1, payloadtest.Only(t, next.windows()[0]).Samples().Len())
			require.Equal(t, empty+2, metric("empty_profiles", ""))
			require.False(t, bytes.Contains(profiletest.ProtoOfCopy(t, next.windows()[0]), []byte("idle")))
		})
	}
}
