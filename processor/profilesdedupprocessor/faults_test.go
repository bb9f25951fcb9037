// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-profiles/otelcol-profiles/internal/merge"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/sampletypes"
)

// A payload with an index out of range is rejected alone.
func TestInvalidIndexIsRejected_P1(t *testing.T) {
	var next downstream
	p := newTestProcessor(t, &next, nil)
	valid := profiletest.GenerateProfiles(profiletest.NewRand(11))
	require.NoError(t, p.ConsumeProfiles(t.Context(), valid))
	faulty := 0
	for field, set := range profiletest.IndexFields() {
		for _, bad := range []int32{-1, math.MaxInt32} {
			pd := profiletest.OneOfEach()
			set(pd, bad)
			pd.MarkReadOnly()
			err := p.ConsumeProfiles(t.Context(), pd)
			require.Truef(t, consumererror.IsPermanent(err), "%s: %v", field, err)
			require.Equal(t, codes.InvalidArgument, status.Code(err), "of the otlp receiver: the client is at fault")
			faulty++
		}
	}
	require.NoError(t, p.Shutdown(t.Context()))
	require.Len(t, next.windows(), 1)
	expand.RequireSameSums(t, []pprofile.Profiles{valid}, next.windows()[0])
	profiletest.Injected(t, fmt.Sprintf("%d payloads with an index to nowhere", faulty))
}

// The next consumer fails half the time for five minutes, is unavailable for one, and returns some
// permanent errors. Each acknowledged payload is sent once, or counted.
func TestRetriesAreAccountedFor_P8(t *testing.T) {
	const payloads = 130 // one every three seconds
	seed := profiletest.Seed(t)
	for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 8))
			begin := time.Now()
			next := downstream{answer: func(int) error {
				switch past := time.Since(begin); {
				case past > 5*time.Minute && past < 6*time.Minute:
					return errors.New("away")
				case past > 10*time.Minute || r.IntN(2) == 0:
					return nil
				case r.IntN(10) == 0:
					return consumererror.NewPermanent(errors.New("never"))
				}
				return errors.New("unavailable")
			}}
			p, metric := newCounted(t, &next, func(c *Config) {
				c.Window, c.Acknowledge, c.MemoryLimit = time.Second, acknowledge, 1<<20
			})
			var acknowledged, rejected, permanent atomic.Int64
			var wg sync.WaitGroup
			for n := range payloads {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
					defer cancel()
					pd := large(n)
					payloadtest.Only(t, pd).SetProfileID(pprofile.ProfileID{byte(n), byte(n >> 8), 1})
					for { // as a client does, until it is accepted
						err := p.ConsumeProfiles(ctx, pd)
						switch {
						case err == nil:
							acknowledged.Add(1)
							return
						case consumererror.IsPermanent(err):
							permanent.Add(1)
							return
						}
						rejected.Add(1)
						time.Sleep(time.Duration(1+n%7) * time.Second)
						ctx, cancel = context.WithTimeout(t.Context(), 8*time.Second)
						defer cancel()
					}
				})
				time.Sleep(3 * time.Second)
			}
			wg.Wait()
			time.Sleep(time.Hour)
			require.NoError(t, p.Shutdown(t.Context()))
			require.EqualValues(t, payloads, acknowledged.Load()+permanent.Load())
			require.Positive(t, metric("retries", ""))
			dropped := metric("dropped_samples", string(reasonPermanent))
			if acknowledge == acknowledgeOnReceive {
				require.Zero(t, permanent.Load())
				require.Positive(t, metric("rejected_payloads", string(reasonMemory)), "back-pressure at the limit")
				require.Equal(t, acknowledged.Load()*2001, next.total()+dropped)
			} else {
				require.Equal(t, acknowledged.Load()*2001, next.total())
			}
			require.Positive(t, metric("outgoing_samples", ""))
			require.Positive(t, metric("flushes", ""))
			if acknowledge == acknowledgeOnFlush {
				dropped = 0 // its clients got an error
			}
			profiletest.Account(t, fmt.Sprintf("%d errors of the next consumer, %d payloads rejected temporarily", next.attempts-len(next.windows()), rejected.Load()),
				int(acknowledged.Load()*2001), int(next.total()), int(dropped))
		})
	}
}

// If clocks of clients step by an hour, the interval of flushes, which is monotonic, does not change,
// and no duration becomes negative.
func TestSteppingClocks_P11(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		// Not 10s: a flush would race with the payload of the same instant.
		p := newTestProcessor(t, &next, func(c *Config) { c.Window = 10*time.Second + time.Millisecond })
		hour := uint64(time.Hour)
		at, steps := 10*hour, 0
		for i := range 120 {
			at += uint64(time.Second)
			if i%30 == 15 {
				at -= hour
				steps++
			} else if i%30 == 0 {
				at += hour
				steps++
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
		profiletest.Account(t, fmt.Sprintf("%d steps of the clock by an hour", steps), 120, int(next.total()), 0)
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
				p := newTestProcessor(t, &next, func(c *Config) { c.Window, c.Acknowledge = 50*time.Millisecond, acknowledge })
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
				p.mu.Lock()
				inMemory := 0
				if p.open != nil {
					inMemory += p.open.merged.Counts().Samples
				}
				for _, part := range p.retries {
					inMemory += part.counts.Samples
				}
				p.mu.Unlock()
				if acknowledge == acknowledgeOnReceive {
					require.Equal(t, acknowledged.Load(), next.total()+int64(inMemory))
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
