// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
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
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

func TestFlushByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next downstream
		p := newTestProcessor(t, &next, nil)
		for i := range 10 {
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(uint64(i+1), 1, 1)))
			time.Sleep(900 * time.Millisecond)
		}
		synctest.Wait()
		require.Empty(t, next.windows(), "the window is open for 10 s")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, next.windows(), 1)
		require.EqualValues(t, 10, next.total())
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, next.windows(), 1, "without payloads, there are no windows")

		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 5)))
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 15, next.total(), "the rest at shutdown")
		require.ErrorIs(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 5)), errStopping)
	})
}

// The message is of the format before OTLP 1.10, where values are the field of today's attributes.
func TestPayloadOfAnOldSenderIsRejected(t *testing.T) {
	message := func(fields ...any) (b []byte) { // number, content
		for i := 0; i < len(fields); i += 2 {
			b = protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(fields[i].(int)), protowire.BytesType), fields[i+1].([]byte))
		}
		return b
	}
	values := func(n int) []byte { return message(2, protowire.AppendVarint(nil, uint64(n))) }
	old := message(1, message(2, message(2, message(2, values(10_000_000), 2, values(1), 2, values(20_000_000)))), 2, message(5, []byte{}))
	pd := profiletest.Unmarshal(t, old)
	var next downstream
	p, metric := newCounted(t, &next, nil)
	err := p.ConsumeProfiles(t.Context(), pd)
	require.True(t, consumererror.IsPermanent(err))
	require.ErrorContains(t, err, "all 3 samples have neither values nor timestamps: the sender probably uses the OTLP profiles format before 1.10; upgrade it")
	require.Equal(t, codes.InvalidArgument, status.Code(err), "400 over HTTP")
	require.EqualValues(t, 1, metric("rejected_payloads", "no_values"))

	payloadtest.Only(t, pd).Samples().At(1).Values().Append(1)
	require.ErrorContains(t, p.ConsumeProfiles(t.Context(), pd), "attribute_indices[0] is 10000000", "not all are empty")
	payloadtest.Only(t, pd).Samples().RemoveIf(func(pprofile.Sample) bool { return true })
	require.NoError(t, p.ConsumeProfiles(t.Context(), pd), "without samples")
	require.NoError(t, p.Shutdown(t.Context()))
}

func TestRetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := downstream{answer: unavailable}
		p := newTestProcessor(t, &next, func(c *Config) {
			c.Window = time.Second
			c.RetryOnFailure.MaxElapsedTime = time.Minute
		})
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1)))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		next.answers(nil)
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 2)))
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 2, next.total())
	})
}

// At shutdown, what is not accepted is retried with a short backoff. The error counts payloads that were dropped
// for lack of time, and names the limit. It does not count permanent errors, which are in the log.
func TestShutdown(t *testing.T) {
	for _, test := range []struct {
		deadline time.Duration // the Collector's
		answer   func(int) error
		takes    time.Duration
		want     string
	}{
		{time.Minute, availableFrom(3), 400 * time.Millisecond, ""},
		{time.Minute, permanently, 0, ""},
		{time.Minute, unavailable, 10 * time.Second, "dropped 1 payloads that the next consumer did not accept within shutdown_timeout (10s)"},
		{time.Second, unavailable, time.Second, "dropped 1 payloads that the next consumer did not accept within the Collector's shutdown deadline"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newTestProcessor(t, &downstream{answer: test.answer}, nil)
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1)))
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			start := time.Now()
			err := p.Shutdown(ctx)
			require.Equal(t, test.takes, time.Since(start))
			if test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// Shutdown does not return before the next consumer, which the Collector stops after it, unless the
// Collector's deadline has passed.
func TestShutdownOfAHangingNext(t *testing.T) {
	for _, test := range []struct {
		deadline, takes time.Duration
		err             string
	}{
		{2 * time.Hour, time.Hour, ""},
		{time.Minute, time.Minute, "next consumer did not return within shutdown_timeout (10s) and is still running"},
	} {
		synctest.Test(t, func(t *testing.T) {
			next := downstream{answer: func(int) error { time.Sleep(time.Hour); return nil }}
			p := newTestProcessor(t, &next, nil)
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(1, 1, 1)))
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			start := time.Now()
			if err := p.Shutdown(ctx); test.err == "" {
				require.NoError(t, err)
				require.EqualValues(t, 1, next.total())
			} else {
				require.ErrorContains(t, err, test.err)
			}
			require.Equal(t, test.takes, time.Since(start))
			p.sending.Wait()
		})
	}
}

// A large payload does not go into a window that it may make too large: the window closes before.
// If it cannot, because another is being exported, the client retries. Small payloads still go in.
func TestOnlyASinglePayloadExceedsAThirdOfMemoryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hang chan struct{}
		next := downstream{answer: func(int) error {
			if hang != nil {
				<-hang
			}
			return nil
		}}
		p := newTestProcessor(t, &next, func(c *Config) { c.MemoryLimit = 4 << 20 })
		requireSmallWindow := func() {
			t.Helper()
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.open != nil {
				require.LessOrEqual(t, p.open.size, p.admission.maxWindow())
			}
		}
		accepted := int64(0)
		for n := range 50 {
			require.NoError(t, p.ConsumeProfiles(t.Context(), large(n)))
			accepted += 2001
			requireSmallWindow()
			synctest.Wait()
		}
		require.Greater(t, len(next.windows()), 2)
		require.Less(t, len(next.windows()), 25, "several payloads in each")

		hang = make(chan struct{})
		var err error
		for n := 100; err == nil; n++ {
			if err = p.ConsumeProfiles(t.Context(), large(n)); err == nil {
				accepted += 2001
			}
			requireSmallWindow()
		}
		require.ErrorIs(t, err, errMemoryLimit)
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.Interval(2, 2, 2)))
		accepted += 2

		// A payload that waits goes into the next window.
		var waiting sync.WaitGroup
		waiting.Go(func() { assert.NoError(t, p.ConsumeProfiles(t.Context(), large(1000))) })
		accepted += 2001
		time.Sleep(roomTimeout / 2)
		close(hang)
		waiting.Wait()
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, accepted, next.total())
	})
}

// If a payload has waited for room in vain, the open window is not closed for it.
func TestAWindowIsNotClosedForAPayloadThatWaitedInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		next := downstream{answer: func(int) error { <-hang; return nil }}
		p, metric := newCounted(t, &next, func(c *Config) { c.MemoryLimit = 4 << 20 })
		accepted := int64(0)
		var err error
		for n := 0; err == nil; n++ {
			if err = p.ConsumeProfiles(t.Context(), large(n)); err == nil {
				accepted += 2001
			}
		}
		require.ErrorIs(t, err, errMemoryLimit)
		close(hang)
		synctest.Wait()
		require.EqualValues(t, 1, metric("flushes", ""), "the window that was full before")
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, metric("flushes", string(reasonWindow)))
		require.EqualValues(t, 2, metric("flushes", ""))
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, accepted, next.total())
	})
}

// 32 producers and windows of 5 ms: the sums are exact.
func TestConcurrentProducers_P12(t *testing.T) {
	var failures atomic.Int64
	next := downstream{answer: func(attempt int) error {
		if attempt%3 == 0 {
			failures.Add(1)
			return errors.New("unavailable")
		}
		return nil
	}}
	p := newTestProcessor(t, &next, func(c *Config) {
		c.Window = 5 * time.Millisecond
		c.RetryOnFailure.InitialInterval = time.Millisecond
		c.RetryOnFailure.MaxInterval = time.Millisecond
	})
	const producers = 32
	each := profiletest.Rounds(t, 40, 2000)
	var wg sync.WaitGroup
	for producer := range producers {
		wg.Go(func() {
			for i := range each {
				pd := payloadtest.Interval(uint64(i+1), 1, 1)
				pd.ResourceProfiles().At(0).Resource().Attributes().PutStr("producer", fmt.Sprint(producer))
				assert.NoError(t, p.ConsumeProfiles(context.Background(), pd))
				time.Sleep(time.Millisecond) // several for each window
			}
		})
	}
	wg.Wait()
	require.NoError(t, p.Shutdown(context.Background()))
	require.Positive(t, failures.Load())
	require.EqualValues(t, producers*each, next.total())
	profiletest.Account(t, fmt.Sprintf("%d producers, %d flushes, %d errors of the next consumer", producers, next.attempts, failures.Load()), producers*each, int(next.total()), 0)
}

func TestShutdownWithoutStart(t *testing.T) {
	p, err := newDedupProcessor(nopSettings(), createDefaultConfig().(*Config), &downstream{})
	require.NoError(t, err)
	require.NoError(t, p.Shutdown(t.Context()))
	require.NoError(t, p.Shutdown(t.Context()))
}

// A caller retries if one of several consumers has asked for it.
func TestPermanentErrorOfOneConsumerIsRetryable(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.Window = 0 },
		func(c *Config) {
			c.Window, c.Acknowledge, c.RetryOnFailure.Enabled = time.Second, acknowledgeOnFlush, false
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			never := consumererror.NewPermanent(errors.New("never"))
			next := &downstream{}
			next.answers(func(int) error { return errors.Join(never, errors.New("later")) })
			p := newTestProcessor(t, next, change)
			err := p.ConsumeProfiles(t.Context(), identified(1, 5))
			require.ErrorContains(t, err, "later")
			require.False(t, consumererror.IsPermanent(err))
			next.answers(func(int) error { return never })
			require.True(t, consumererror.IsPermanent(p.ConsumeProfiles(t.Context(), identified(1, 5))))
			require.NoError(t, p.Shutdown(t.Context()))
		})
	}
}
