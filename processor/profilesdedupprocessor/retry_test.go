// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// services is a next consumer that is unavailable for some services.
type services struct {
	mu       sync.Mutex
	away     map[string]bool
	attempts map[string]int
	accepted map[string][]pprofile.Profiles
}

func newServices(away ...string) *services {
	s := &services{away: map[string]bool{}, attempts: map[string]int{}, accepted: map[string][]pprofile.Profiles{}}
	for _, name := range away {
		s.away[name] = true
	}
	return s
}

func (s *services) consume(ctx context.Context, pd pprofile.Profiles) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
	if names := client.FromContext(ctx).Metadata.Get("service.name"); len(names) != 1 || names[0] != v.Str() {
		return fmt.Errorf("the metadata are those of %v", names)
	}
	s.attempts[v.Str()]++
	if s.away[v.Str()] {
		pd.ResourceProfiles().RemoveIf(func(pprofile.ResourceProfiles) bool { return true })
		return errors.New("this service is unavailable")
	}
	s.accepted[v.Str()] = append(s.accepted[v.Str()], pd)
	return nil
}

func (s *services) back(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[name] = false
}

func (s *services) total(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := downstream{accepted: s.accepted[name]}
	return d.total()
}

func splitByService(c *Config) {
	c.SplitBy, c.Window = []string{"service.name"}, time.Second
}

// A rejected partition of one service does not delay other services, and is sent when the next
// consumer accepts it.
func TestUnavailablePartitionDoesNotBlockOthers_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := newServices("bad")
		p := newTestProcessor(t, nextFunc(next.consume), func(c *Config) { splitByService(c); c.MemoryLimit = 1 << 20 })
		for i := range 300 {
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(large(i), "service.name", "good")))
			if i%60 == 0 {
				require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(payloadtest.Interval(uint64(i+1), 1, 1), "service.name", "bad")))
			}
			time.Sleep(2 * time.Second)
		}
		synctest.Wait()
		require.Len(t, next.accepted["good"], 300)
		require.Less(t, next.attempts["bad"], 5*27, "each of the five payloads with its own backoff")
		require.Greater(t, next.attempts["bad"], 15)
		require.Positive(t, p.retrySize)
		next.back("bad")
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, p.retrySize)
		require.EqualValues(t, 5, next.total("bad"))
		var times []uint64
		for _, pd := range next.accepted["bad"] {
			times = append(times, uint64(payloadtest.Only(t, pd).Time()))
		}
		require.ElementsMatch(t, []uint64{1, 61, 121, 181, 241}, times, "each once, in any order")
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, next.accepted["bad"], 5)
		profiletest.Account(t, fmt.Sprintf("%d rejections of one service", next.attempts["bad"]-5), 305, len(next.accepted["good"])+len(next.accepted["bad"]), 0)
	})
}

// The retry queue counts towards memory_limit. At the limit, payloads are rejected. All acknowledged
// payloads are sent.
func TestRetryQueueIsBounded_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := newServices("bad")
		p := newTestProcessor(t, nextFunc(next.consume), func(c *Config) { splitByService(c); c.MemoryLimit = 1 << 20 })
		accepted, rejected := int64(0), 0
		for i := range 100 {
			if err := p.ConsumeProfiles(t.Context(), payloadtest.With(large(i), "service.name", "bad")); err == nil {
				accepted += 2001
			} else {
				require.ErrorIs(t, err, errMemoryLimit)
				rejected++
			}
			require.Less(t, p.telemetry.retained.Load(), int64(1<<20))
			time.Sleep(3 * time.Second)
		}
		require.Positive(t, rejected)
		require.Positive(t, accepted)
		next.back("bad")
		time.Sleep(time.Minute)
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(large(1000), "service.name", "bad")))
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, accepted+2001, next.total("bad"))
		profiletest.Account(t, fmt.Sprintf("%d payloads rejected temporarily", rejected), int(accepted+2001), int(next.total("bad")), 0)
	})
}

// Many partitions with one dictionary, which are all retried, stay within the limit, and all are
// sent.
func TestRetryQueueOfManyPartitionsIsBounded_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, partitions = 4 << 20, 80
		next := downstream{answer: unavailable}
		p := newTestProcessor(t, &next, func(c *Config) { splitByService(c); c.MemoryLimit = limit })
		require.NoError(t, p.ConsumeProfiles(t.Context(), ofServices(large(1), partitions)))
		for range 100 {
			time.Sleep(time.Second)
			synctest.Wait()
			p.mu.Lock()
			held := p.retrySize
			p.mu.Unlock()
			require.Positive(t, held)
			require.Less(t, held, limit/3)
		}
		rejected := next.attempts
		next.answers(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, p.retrySize)
		require.Nil(t, p.exporting)
		require.Len(t, next.windows(), partitions)
		require.NoError(t, p.Shutdown(t.Context()))
		profiletest.Account(t, fmt.Sprintf("%d rejections", rejected), 2001*partitions, int(next.total()), 0)
	})
}

// The retries of a value that is available again do not delay other values.
func TestBacklogDoesNotDelayOthers_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(5 * time.Minute)
		var good []time.Time // when they were accepted
		bad := 0
		next := nextFunc(func(_ context.Context, pd pprofile.Profiles) error {
			v, _ := pd.ResourceProfiles().At(0).Resource().Attributes().Get("service.name")
			if v.Str() == "bad" && time.Now().Before(until) {
				return errors.New("this service is unavailable")
			}
			time.Sleep(500 * time.Millisecond)
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
				require.NoError(t, p.ConsumeProfiles(t.Context(), ofService(name, 1)))
			}
			time.Sleep(2100 * time.Millisecond)
		}
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, good, windows)
		require.Equal(t, windows, bad)
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
			next := newServices("bad", "worse")
			p := newTestProcessor(t, nextFunc(next.consume), splitByService)
			for i := range 100 {
				for _, name := range []string{"good", "bad", "worse"} {
					if name != "worse" || i == 0 {
						require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(payloadtest.Interval(uint64(i+1), 1, 1), "service.name", name)))
					}
				}
				time.Sleep(2 * time.Second)
			}
			next.back("bad")
			if back {
				next.back("worse")
			}
			start := time.Now()
			err := p.Shutdown(t.Context())
			if back {
				require.NoError(t, err)
				require.Less(t, time.Since(start), time.Second)
				require.EqualValues(t, 1, next.total("worse"))
			} else {
				require.ErrorContains(t, err, "dropped 1 payloads that the next consumer did not accept")
			}
			require.EqualValues(t, 100, next.total("good"))
			require.EqualValues(t, 100, next.total("bad"))
			profiletest.Injected(t, fmt.Sprintf("%d calls for services that may be unavailable", next.attempts["bad"]+next.attempts["worse"]))
		})
	}
}

// A retry sends the same payload.
func TestRetrySendsTheSamePayload(t *testing.T) {
	var first, second downstream
	for _, next := range []*downstream{&first, &second} {
		synctest.Test(t, func(t *testing.T) {
			p := newTestProcessor(t, next, func(c *Config) { c.SplitBy = []string{"service.name"} })
			pd := payloadtest.With(large(1), "service.name", "checkout", "a", "b")
			require.NoError(t, p.ConsumeProfiles(t.Context(), pd))
			if next == &second {
				next.answers(availableFrom(4))
			}
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
	require.Equal(t, 4, second.attempts)
	require.Equal(t, marshal(t, first.windows()[0]), marshal(t, second.windows()[0]))
}
