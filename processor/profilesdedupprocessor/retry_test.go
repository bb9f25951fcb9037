// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

func splitByService(c *Config) {
	c.SplitBy, c.Window = []string{"service.name"}, time.Second
}

// The retry queue counts towards memory_limit. At the limit, payloads are rejected. All acknowledged
// payloads are sent.
func TestRetryQueueIsBounded_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := downstream{away: []string{"bad"}}
		p, metric := newCounted(t, &next, func(c *Config) { splitByService(c); c.MemoryLimit = 1 << 20 })
		accepted, rejected := int64(0), 0
		for i := range 100 {
			if err := p.ConsumeProfiles(t.Context(), payloadtest.With(large(i), "service.name", "bad")); err == nil {
				accepted += 2001
			} else {
				require.ErrorIs(t, err, errMemoryLimit)
				rejected++
			}
			require.Less(t, p.retained(), int64(1<<20))
			time.Sleep(3 * time.Second)
		}
		require.Positive(t, rejected)
		require.EqualValues(t, rejected, metric("rejected_payloads", string(reasonMemory)))
		require.Positive(t, accepted)
		require.Positive(t, metric("retries", ""))
		next.rejects()
		time.Sleep(time.Minute)
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(large(1000), "service.name", "bad")))
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, accepted+2001, next.totalOf("bad"))
		profiletest.Account(t, fmt.Sprintf("%d payloads rejected temporarily", rejected), int(accepted+2001), int(next.totalOf("bad")), 0)
	})
}

// Many partitions of one window, which are all retried, stay within the limit.
func TestRetryQueueOfManyPartitionsIsBounded_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, partitions = 4 << 20, 80
		next := downstream{answer: unavailable}
		p := newTestProcessor(t, &next, func(c *Config) { splitByService(c); c.MemoryLimit = limit })
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.OfServices(large(1), partitions)))
		time.Sleep(100 * time.Second)
		synctest.Wait()
		require.Positive(t, counted(p).messages)
		require.Less(t, counted(p).messages, limit/3)
		next.answers(nil)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, next.windows(), partitions)
		profiletest.Account(t, fmt.Sprintf("%d rejections", next.attempts-partitions), 2001*partitions, int(next.total()), 0)
	})
}

// The retries of a value that is unavailable, and then available again, do not delay other values. Each payload has its
// own backoff.
func TestBacklogDoesNotDelayOthers_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(5 * time.Minute)
		var mu sync.Mutex
		var good []time.Time // when they were accepted
		bad, rejected := 0, 0
		next := nextFunc(func(_ context.Context, pd pprofile.Profiles) error {
			v, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
			away := v.Str() == "bad" && time.Now().Before(until)
			if !away {
				time.Sleep(500 * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			if away {
				rejected++
				return errors.New("this service is unavailable")
			}
			if v.Str() == "bad" {
				bad++
			} else {
				good = append(good, time.Now())
			}
			return nil
		})
		p := newTestProcessor(t, next, func(c *Config) { splitByService(c); c.Window = 2 * time.Second })
		const windows = 250
		for range windows {
			for _, name := range []string{"good", "bad"} {
				require.NoError(t, p.ConsumeProfiles(t.Context(), service(name, 1)))
			}
			time.Sleep(2100 * time.Millisecond)
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, good, windows)
		require.Equal(t, windows, bad)
		require.Less(t, rejected, 10*windows)
		for i := 1; i < windows; i++ {
			require.Less(t, good[i].Sub(good[i-1]), 4*time.Second)
		}
		profiletest.Account(t, "5 minutes without one service", 2*windows, len(good)+bad, 0)
	})
}

// At shutdown, the retry queue is sent once more at once. The error counts the payloads that are then
// dropped.
func TestShutdownSendsRetryQueue_P9(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			next := downstream{away: []string{"bad", "worse"}}
			p := newTestProcessor(t, &next, splitByService)
			for i := range 100 {
				for _, name := range []string{"good", "bad", "worse"} {
					if name != "worse" || i == 0 {
						require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(payloadtest.Interval(uint64(i+1), 1, 1), "service.name", name)))
					}
				}
				time.Sleep(2 * time.Second)
			}
			next.rejects("worse")
			if back {
				next.rejects()
			}
			start := time.Now()
			err := p.Shutdown(t.Context())
			if back {
				require.NoError(t, err)
				require.Less(t, time.Since(start), time.Second)
				require.EqualValues(t, 1, next.totalOf("worse"))
			} else {
				require.ErrorContains(t, err, "dropped 1 payloads that the next consumer did not accept")
			}
			require.EqualValues(t, 100, next.totalOf("good"))
			require.EqualValues(t, 100, next.totalOf("bad"))
		})
	}
}

// A retry sends the same payload.
func TestRetrySendsTheSamePayload(t *testing.T) {
	var first, second downstream
	for _, next := range []*downstream{&first, &second} {
		synctest.Test(t, func(t *testing.T) {
			p := newTestProcessor(t, next, func(c *Config) { c.SplitBy = []string{"service.name"} })
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(large(1), "service.name", "checkout", "a", "b")))
			if next == &second {
				next.answers(availableFrom(4))
			}
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
	require.Equal(t, 4, second.attempts)
	require.Equal(t, profiletest.ProtoOfCopy(t, first.windows()[0]), profiletest.ProtoOfCopy(t, second.windows()[0]))
}

// Each value is sent as a payload of its own, with client metadata. The outcome of one does not
// affect the others.
func TestSplitBy(t *testing.T) {
	payload := func() pprofile.Profiles {
		pd := pprofile.NewProfiles()
		for i, service := range []string{"a", "b", "c", ""} {
			one := identified(byte(i+1), 1<<i)
			if service != "" {
				payloadtest.With(one, "service.name", service)
			}
			if i == 0 {
				one.CopyTo(pd)
			} else {
				one.ResourceProfiles().At(0).CopyTo(pd.ResourceProfiles().AppendEmpty())
			}
		}
		return pd
	}
	for _, window := range []time.Duration{0, time.Second} {
		for _, acknowledge := range []string{acknowledgeOnReceive, acknowledgeOnFlush} {
			synctest.Test(t, func(t *testing.T) {
				var next downstream
				var mu sync.Mutex
				var tenant []string
				answer := func(ctx context.Context, pd pprofile.Profiles) error {
					mu.Lock()
					defer mu.Unlock()
					tenant = client.FromContext(ctx).Metadata.Get("tenant")
					switch values := client.FromContext(ctx).Metadata.Get("service.name"); {
					case slices.Contains(values, "b"):
						return consumererror.NewPermanent(errors.New("never"))
					case slices.Contains(values, "c") && next.attempts < 3:
						next.attempts++
						return errors.New("unavailable")
					}
					profiletest.RequireConforms(t, pd)
					return next.ConsumeProfiles(ctx, pd)
				}
				p := newTestProcessor(t, nextFunc(answer), func(c *Config) {
					c.Window, c.Acknowledge, c.SplitBy = window, acknowledge, []string{"service.name"}
				})
				ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"tenant": {"t"}})})
				for range 3 {
					err := p.ConsumeProfiles(ctx, payload())
					time.Sleep(time.Minute)
					require.Equal(t, window == 0 || acknowledge == acknowledgeOnFlush, err != nil)
				}
				require.Equal(t, []int64{1, 4, 8}, []int64{next.totalOf("a"), next.totalOf("c"), next.totalOf("")}, "each once")
				if window == 0 {
					require.Equal(t, []string{"t"}, tenant, "the other metadata stay")
				}
				require.NoError(t, p.Shutdown(t.Context()))
			})
		}
	}
}

// Partitions that remain after shutdown_timeout are dropped, and none is sent after Shutdown.
func TestShutdownTimeoutAmongPartitions_P9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := downstream{answer: func(int) error {
			time.Sleep(time.Second) // whatever the context says
			return nil
		}}
		p := newTestProcessor(t, &next, func(c *Config) {
			c.SplitBy, c.ShutdownTimeout = []string{"service.name"}, 2500*time.Millisecond
		})
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.OfServices(payloadtest.Interval(1, 1, 1), 100)))
		require.ErrorContains(t, p.Shutdown(t.Context()), "dropped 70 payloads that the next consumer did not accept")
		require.Len(t, next.windows(), 30, "ten at once")
		time.Sleep(time.Hour)
		require.Len(t, next.windows(), 30)
	})
}
