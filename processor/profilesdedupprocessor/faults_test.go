// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/sampletypes"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// If clocks of clients step by an hour, the interval of flushes, which is monotonic, does not change,
// and no duration becomes negative.
func TestSteppingClocks_P11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		// Not 10s: a flush would race with the payload of the same instant.
		p := newTestProcessor(t, &next, func(c *Config) { c.Window = 10*time.Second + time.Millisecond })
		hour := uint64(time.Hour)
		at := 10 * hour
		for i := range 120 {
			at += uint64(time.Second)
			if i%30 == 15 {
				at -= hour
			} else if i%30 == 0 {
				at += hour
			}
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(at, uint64(time.Second), 1)))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		require.Len(t, next.windows(), 11, "a window begins with the first payload after the last flush")
		for _, pd := range next.windows() {
			for p := range sampletypes.ProfilesOf(pd) {
				require.LessOrEqual(t, p.DurationNano(), uint64(20*time.Second), "a Profile is of one slot")
			}
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 120, next.total())
		profiletest.Account(t, "8 steps of the clock by an hour", 120, int(next.total()), 0)
	})
}

// As the Collector's VerifyShutdown, for profiles: when Shutdown returns, all acknowledged payloads
// have been sent, and none is sent later. Here, clients do not stop before the processor.
func TestVerifyShutdown_P9(t *testing.T) {
	for range profiletest.Rounds(t, 20, 200) {
		var next downstream
		p := newTestProcessor(t, &next, func(c *Config) { c.Window = time.Hour })
		var acknowledged atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					if err := p.ConsumeProfiles(context.Background(), payloadtest.Interval(1, 1, 1)); err != nil {
						assert.ErrorIs(t, err, errStopping)
						return
					}
					acknowledged.Add(1)
				}
			})
		}
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
		require.NoError(t, p.Shutdown(t.Context()))
		wg.Wait()
		total := next.total()
		require.Equal(t, acknowledged.Load(), total)
		profiletest.Account(t, "1 shutdowns under load", int(acknowledged.Load()), int(total), 0)
		require.ErrorIs(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1)), errStopping)
		require.Equal(t, total, next.total())
	}
}

// A crash loses what is in memory. At any moment, all that is acknowledged with on_flush has been accepted. With
// on_receive, the rest is in windows that have not been exported.
func TestCrashLosesOnlyWindowsNotExported_P10(t *testing.T) {
	for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
		for range profiletest.Rounds(t, 10, 200) {
			synctest.Test(t, func(t *testing.T) {
				next := downstream{answer: func(attempt int) error {
					if attempt%5 == 0 {
						return errors.New("unavailable")
					}
					return nil
				}}
				p, metric := newCounted(t, &next, func(c *Config) { c.Window, c.Acknowledge = 50*time.Millisecond, acknowledge })
				var acknowledged atomic.Int64
				var wg sync.WaitGroup
				for producer := range 4 {
					wg.Go(func() {
						for i := 0; ; i++ {
							pd := identified(byte(i), 1)
							payloadtest.With(pd, "producer", fmt.Sprint(producer), "number", fmt.Sprint(i))
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(400))*time.Millisecond)
							err := p.ConsumeProfiles(ctx, pd)
							for ; errors.Is(err, context.DeadlineExceeded); err = p.ConsumeProfiles(t.Context(), pd) {
							}
							cancel()
							if err != nil {
								return
							}
							acknowledged.Add(1)
							time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
						}
					})
				}
				time.Sleep(time.Duration(rand.IntN(4000)) * time.Millisecond)
				synctest.Wait()
				inMemory := metric("incoming_samples", "") - metric("duplicate_samples", "") - metric("outgoing_samples", "")
				if acknowledge == acknowledgeOnReceive {
					require.Equal(t, acknowledged.Load(), next.total()+inMemory)
				} else {
					require.LessOrEqual(t, acknowledged.Load(), next.total())
				}
				profiletest.Injected(t, fmt.Sprintf("1 crash with %s, %d samples in memory", acknowledge, inMemory))
				require.NoError(t, p.Shutdown(t.Context()))
				wg.Wait()
				require.LessOrEqual(t, acknowledged.Load(), next.total())
			})
		}
	}
}

// The metrics of a small run are as calculated by hand.
func TestTelemetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		p, metric := newCounted(t, &next, func(c *Config) { c.Snapshots = string(merge.SnapshotsLatest) })
		for range 3 {
			require.NoError(t, p.ConsumeProfiles(t.Context(), identified(1, 5)))
		}
		for i := range 4 {
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Snapshot("a", uint64(i+1), 5)))
		}
		bad := payloadtest.Interval(1, 1, 1)
		payloadtest.Only(t, bad).Samples().At(0).SetLinkIndex(4)
		require.Error(t, p.ConsumeProfiles(t.Context(), bad))
		require.Positive(t, p.retained())
		time.Sleep(time.Minute)
		require.NoError(t, p.Shutdown(t.Context()))
		for _, want := range []struct {
			name, reason string
			value        int64
		}{
			{"incoming_profiles", "", 7}, {"incoming_samples", "", 7},
			{"duplicate_profiles", "", 2}, {"duplicate_samples", "", 2},
			{"outgoing_profiles", "", 2}, {"outgoing_samples", "", 2},
			{"dropped_profiles", string(reasonSuperseded), 3}, {"dropped_samples", "", 0},
			{"rejected_payloads", string(reasonInvalid), 1}, {"rejected_payloads", "", 1},
			{"flushes", string(reasonWindow), 1}, {"flushes", "", 1}, {"retries", "", 0},
			{"incoming_bytes", "", int64(3*sizeOf(identified(1, 5)) + 4*sizeOf(payloadtest.Snapshot("a", 1, 5)))},
			{"outgoing_bytes", "", int64(next.bytes)},
		} {
			require.Equalf(t, want.value, metric(want.name, want.reason), "%s %s", want.name, want.reason)
		}
	})
}
