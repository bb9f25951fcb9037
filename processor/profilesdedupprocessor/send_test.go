// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumererror/xconsumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

// counted is a copy of what p counts.
func counted(p *dedupProcessor) admission {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.admission
}

// slow is a next consumer that takes half a second, and counts the calls at once.
type slow struct {
	downstream
	mu             sync.Mutex
	running, peak  int
	whenItAccepted []time.Duration // since the start
	start          time.Time
}

func (s *slow) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	count := func(n int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running += n
		s.peak = max(s.peak, s.running)
	}
	count(1)
	defer count(-1)
	time.Sleep(500 * time.Millisecond)
	err := s.downstream.ConsumeProfiles(ctx, pd)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whenItAccepted = append(s.whenItAccepted, time.Since(s.start))
	return err
}

// 100 services behind a next consumer that takes half a second are all answered well within the 30 s of their clients, with
// one push and with several, and although some are unavailable. No more than num_consumers calls run at once.
func TestManyPartitionsBehindASlowConsumer_A8(t *testing.T) {
	const services = 100
	for _, rounds := range []int{1, 5} {
		synctest.Test(t, func(t *testing.T) {
			next := &slow{start: time.Now()}
			p := newTestProcessor(t, next, func(c *Config) {
				onFlush(c)
				c.Window, c.SplitBy = 5*time.Second, []string{"service.name"}
			})
			var clients sync.WaitGroup
			for n := range services {
				clients.Go(func() {
					for range rounds {
						start := time.Now()
						assert.NoError(t, p.ConsumeProfiles(t.Context(), service(fmt.Sprint("service-", n), 1)))
						assert.Less(t, time.Since(start), 15*time.Second)
					}
				})
			}
			clients.Wait()
			require.NoError(t, p.Shutdown(t.Context()))
			require.EqualValues(t, services*rounds, next.total())
			require.Equal(t, 10, next.peak)
		})
	}
}

// Without a window, the partitions of a payload are sent side by side, too.
func TestPartitionsOfAPayloadWithoutAWindow_A8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &slow{start: time.Now()}
		p := newTestProcessor(t, next, func(c *Config) { c.Window, c.SplitBy, c.NumConsumers = 0, []string{"service.name"}, 5 })
		require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.OfServices(payloadtest.Interval(1, 1, 1), 20)))
		require.Equal(t, 2*time.Second, time.Since(next.start))
		require.Equal(t, 5, next.peak)
		require.EqualValues(t, 20, next.total())
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A partition that backs off holds no place: others are sent although more of them wait than there are places.
func TestBackoffHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := downstream{away: []string{"a", "b", "c"}}
		p := newTestProcessor(t, &next, func(c *Config) { splitByService(c); c.NumConsumers = 2 })
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, p.ConsumeProfiles(t.Context(), service(name, 1)))
		}
		time.Sleep(10 * time.Second)
		require.NoError(t, p.ConsumeProfiles(t.Context(), service("good", 1)))
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, next.totalOf("good"))
		next.rejects()
		require.NoError(t, p.Shutdown(t.Context()))
		require.EqualValues(t, 4, next.totalOf("a")+next.totalOf("b")+next.totalOf("c")+next.totalOf("good"))
	})
}

// A backlog of calls that hang takes no more than its share of the places, with one place, too.
func TestHangingBacklogLeavesPlaces(t *testing.T) {
	for _, places := range []int{1, 2, 10} {
		synctest.Test(t, func(t *testing.T) {
			var next downstream
			hanging := nextFunc(func(ctx context.Context, pd pprofile.Profiles) error {
				if client.FromContext(ctx).Metadata.Get("service.name")[0] != "good" {
					time.Sleep(5 * time.Second)
					return errors.New("timeout")
				}
				return next.ConsumeProfiles(ctx, pd)
			})
			p := newTestProcessor(t, hanging, func(c *Config) { splitByService(c); c.NumConsumers = places })
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.OfServices(payloadtest.Interval(1, 1, 1), 60)))
			time.Sleep(10 * time.Minute)
			begin := time.Now()
			require.NoError(t, p.ConsumeProfiles(t.Context(), service("good", 1)))
			for next.totalOf("good") == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			require.Less(t, time.Since(begin), 13*time.Second, "the window, and at most two calls")
			require.ErrorContains(t, p.Shutdown(t.Context()), "dropped 60 payloads")
		})
	}
}

// throttles are the ways in which a next consumer asks for a delay.
func throttles(t *testing.T, delay time.Duration) map[string]error {
	info, err := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	require.NoError(t, err)
	throttle := exporterhelper.NewThrottleRetry(errors.New("429"), delay)
	return map[string]error{
		"throttle":         throttle,
		"wrapped":          fmt.Errorf("exporter: %w", throttle),
		"joined":           errors.Join(errors.New("other"), exporterhelper.NewThrottleRetry(errors.New("503"), delay/2), throttle),
		"part of payload":  xconsumererror.NewProfiles(throttle, pprofile.NewProfiles()),
		"gRPC":             info.Err(),
		"gRPC, throttled":  exporterhelper.NewThrottleRetry(info.Err(), delay/2),
		"throttle of gRPC": exporterhelper.NewThrottleRetry(status.Error(codes.Unavailable, "busy"), delay),
	}
}

// It fails if the text of NewThrottleRetry changes, which has no accessor. What a server writes is no delay.
func TestDelayOf_A7(t *testing.T) {
	for _, delay := range []time.Duration{time.Millisecond, 90 * time.Second, 24 * time.Hour} {
		for name, err := range throttles(t, delay) {
			require.Equal(t, delay, delayOf(err), name)
		}
	}
	text := exporterhelper.NewThrottleRetry(errors.New("429"), time.Hour).Error()
	for _, err := range []error{
		nil, errors.New("unavailable"), errors.New(text), fmt.Errorf("%s: %w", text, errors.New("429")),
		status.Error(codes.Unavailable, text), fmt.Errorf("Throttle (soon), error: %w", errors.New("429")),
		exporterhelper.NewThrottleRetry(errors.New("429"), -time.Hour),
	} {
		require.LessOrEqual(t, delayOf(err), time.Duration(0), "%v", err)
	}
}

// The next consumer is not asked before the delay that it has asked for, neither for the payload that it did not accept nor for later
// ones of the same values of split_by. Other values are not delayed. A delay of a day is bounded.
func TestDelayOfTheNextConsumerIsALowerBound_A7(t *testing.T) {
	for _, test := range []struct {
		delay, maxElapsed time.Duration
		want              time.Duration // until the next attempt
	}{
		{20 * time.Second, 0, 20 * time.Second},
		{10 * time.Minute, 0, 10 * time.Minute},
		{24 * time.Hour, 0, maxThrottle},
		{24 * time.Hour, 2 * time.Minute, 2 * time.Minute},
		{time.Millisecond, 0, time.Second}, // less than the backoff
	} {
		for name, throttle := range throttles(t, test.delay) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var asked, others []time.Duration
				begin := time.Now().Add(time.Second) // the end of the window
				next := nextFunc(func(ctx context.Context, _ pprofile.Profiles) error {
					mu.Lock()
					defer mu.Unlock()
					if client.FromContext(ctx).Metadata.Get("service.name")[0] == "other" {
						others = append(others, time.Since(begin))
						return nil
					}
					if asked = append(asked, time.Since(begin)); len(asked) == 1 {
						return throttle
					}
					return nil
				})
				p := newTestProcessor(t, next, func(c *Config) { splitByService(c); c.RetryOnFailure.MaxElapsedTime = test.maxElapsed })
				require.NoError(t, p.ConsumeProfiles(t.Context(), service("a", 1)))
				time.Sleep(2 * time.Second)
				if test.want > time.Second {
					require.NoError(t, p.ConsumeProfiles(t.Context(), service("a", 10)))
				}
				require.NoError(t, p.ConsumeProfiles(t.Context(), service("other", 100)))
				time.Sleep(48 * time.Hour)
				require.NoError(t, p.Shutdown(t.Context()))
				want := []time.Duration{0, test.want, test.want}
				if test.want == time.Second {
					want = want[:2]
				}
				require.Equal(t, want, asked, "%s: %v", name, test)
				require.Equal(t, []time.Duration{2 * time.Second}, others)
				require.Zero(t, counted(p).messages)
			})
		}
	}
}

// A service that is delayed takes no memory from others, except that of its own OTLP.
func TestDelayOfOneServiceDoesNotHoldOthers_A7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var sink downstream
		next := nextFunc(func(ctx context.Context, pd pprofile.Profiles) error {
			if client.FromContext(ctx).Metadata.Get("service.name")[0] == "a" && time.Since(begin) < time.Hour {
				return exporterhelper.NewThrottleRetry(errors.New("429"), 30*time.Minute)
			}
			return sink.ConsumeProfiles(ctx, pd)
		})
		p, metric := newCounted(t, next, func(c *Config) { splitByService(c); c.MemoryLimit = 4 << 20 })
		const windows = 40
		for n := range windows {
			require.NoError(t, p.ConsumeProfiles(t.Context(), service("a", 1)))
			require.NoError(t, p.ConsumeProfiles(t.Context(), payloadtest.With(large(n), "service.name", "good")))
			time.Sleep(1500 * time.Millisecond)
			require.EqualValues(t, 2001*(n+1), sink.totalOf("good"))
		}
		synctest.Wait()
		require.Zero(t, counted(p).closed)
		require.Equal(t, windows, counted(p).waiting)
		require.Zero(t, metric("retries", ""))
		time.Sleep(2 * time.Hour)
		require.EqualValues(t, windows, sink.totalOf("a"))
		require.NoError(t, p.Shutdown(t.Context()))
		require.Zero(t, p.retained())
	})
}

// Shutdown ends the wait for a delay at once. A delay that the next consumer asks for during shutdown is at most a second.
func TestShutdownEndsDelays_A7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		next := downstream{answer: func(attempt int) error {
			if attempt < 3 {
				return exporterhelper.NewThrottleRetry(errors.New("429"), 30*time.Minute)
			}
			return nil
		}}
		p := newTestProcessor(t, &next, func(c *Config) { c.Window = time.Second })
		require.NoError(t, p.ConsumeProfiles(t.Context(), service("a", 1)))
		time.Sleep(10 * time.Second)
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, 11*time.Second, time.Since(begin))
		require.EqualValues(t, 1, next.total())
	})
}

// While payloads wait for a retry, the status of the component is a recoverable error, and the log has one warning a
// minute, with what waits. Afterwards the status is OK.
func TestOutageIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := downstream{answer: unavailable}
		set := nopSettings()
		logs, host := profiletest.LogFromInfo(&set.TelemetrySettings), profiletest.NewStatusHost()
		cfg := createDefaultConfig().(*Config)
		splitByService(cfg)
		p, err := newDedupProcessor(set, cfg, &next)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), host))
		for range 3 {
			require.NoError(t, p.ConsumeProfiles(t.Context(), ofTwoServices(t)))
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		warnings := logs.FilterMessage(exportFailed).All()
		require.Len(t, warnings, 3, "although there were more attempts")
		failures := int64(0)
		for _, w := range warnings {
			require.Equal(t, zap.WarnLevel, w.Level)
			fields := w.ContextMap()
			failures += fields["count"].(int64)
			require.Equal(t, "unavailable", fields["error"])
			require.Positive(t, fields["waiting_payloads"])
			require.Positive(t, fields["waiting_bytes"])
		}
		require.Greater(t, failures, int64(20))
		require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.Statuses())

		next.answers(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.EqualValues(t, 33, next.total())
		require.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.Statuses())
		require.Equal(t, 1, logs.FilterMessage("Exported all payloads that waited for a retry").Len())
		require.NoError(t, p.Shutdown(t.Context()))
		require.Len(t, host.Statuses(), 2)
	})
}

// Payloads are sent side by side within memory_limit although the open window and the closed one take their thirds: each
// takes what it measures.
func TestPartitionsOfAFullWindowAreSentSideBySide_P5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 16 << 20
		next := &slow{start: time.Now()}
		p := newTestProcessor(t, next, func(c *Config) { splitByService(c); c.Window, c.MemoryLimit = time.Hour, limit })
		next.answers(func(int) error {
			assert.LessOrEqual(t, p.retained(), int64(limit))
			time.Sleep(1500 * time.Millisecond) // in all, longer than a payload waits for room
			return nil
		})
		accepted := int64(0)
		var err error
		for n := 0; err == nil; n++ {
			if err = p.ConsumeProfiles(t.Context(), payloadtest.With(large(n), "service.name", fmt.Sprint("service-", n%50))); err == nil {
				accepted += 2001
			}
		}
		require.ErrorIs(t, err, errMemoryLimit)
		synctest.Wait()
		first, second := counted(p).closed, counted(p).open
		require.Greater(t, min(first, second), limit/4)
		for counted(p).closed == first {
			time.Sleep(100 * time.Millisecond)
		}
		require.Less(t, time.Since(next.start), 10*time.Second, "17 payloads of two seconds")
		require.NoError(t, p.Shutdown(t.Context()))
		require.Equal(t, accepted, next.total())
		require.Zero(t, p.retained())
	})
}

// Permits are granted within memory and places, whatever their order, sizes and results; the bytes are those of what is
// there; and each is granted at last.
func TestPermitsStayWithinMemory_P5(t *testing.T) {
	seed := profiletest.Seed(t)
	for round := range uint64(profiletest.Rounds(t, 200, 20_000)) {
		r := rand.New(rand.NewPCG(seed, round))
		a := &admission{limit: 1000, places: 1 + r.IntN(5)}
		var waiting, running []*permit
		admitted := func() {
			waiting = slices.DeleteFunc(waiting, func(t *permit) bool {
				select {
				case <-t.granted:
					running = append(running, t)
					return true
				default:
					return false
				}
			})
			sum := 0
			for _, t := range running {
				sum += t.size
			}
			require.Equal(t, sum, a.payloads)
			require.Equal(t, len(running), a.held)
			require.LessOrEqual(t, a.held, a.places)
			require.Len(t, waiting, len(a.first)+len(a.again))
		}
		for range 100 {
			switch {
			case r.IntN(2) == 0:
				before := a.retained()
				size := r.IntN(400)
				request := a.request(func() int { return size }, r.IntN(2) == 0)
				waiting = append(waiting, request)
				admitted()
				if request.held && a.held > 1 {
					require.LessOrEqual(t, before+size, a.limit)
				}
			case len(running) > 0 && r.IntN(2) == 0:
				i := r.IntN(len(running))
				done := running[i]
				running = slices.Delete(running, i, i+1)
				a.end(done)
			case len(running) > 0:
				changed := running[r.IntN(len(running))]
				a.resize(changed, r.IntN(changed.size+1))
			case len(waiting) > 0: // its context ends
				i := r.IntN(len(waiting))
				gone := waiting[i]
				waiting = slices.Delete(waiting, i, i+1)
				a.end(gone)
			}
			admitted()
		}
		for len(running) > 0 {
			done := running[0]
			running = running[1:]
			a.end(done)
			admitted()
		}
		require.Empty(t, waiting, "each is granted")
		require.Zero(t, a.retained())
	}
}

// While messages take their share, nothing is sent for the first time. What waits is sent again, which makes room.
func TestFirstAttemptsWaitForMessages(t *testing.T) {
	a := &admission{limit: 1200, places: 2, messages: 301}
	ten := func() int { return 10 }
	first, again := a.request(ten, false), a.request(ten, true)
	require.False(t, first.held)
	require.True(t, again.held)
	require.False(t, a.mayClose(10))
	a.messages = 299
	a.end(again)
	require.True(t, first.held)
	require.True(t, a.mayClose(300))
	a.windowClosed(300)
	require.False(t, a.mayClose(1), "closed windows take a third of what messages leave")
	a.stopping = true
	require.True(t, a.mayClose(1000))
}

// The next consumer rejects a payload permanently, and accepts others, while retries of a third kind go on.
func TestSplitOutcomesSideBySide_P8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := nextFunc(func(ctx context.Context, _ pprofile.Profiles) error {
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
			switch client.FromContext(ctx).Metadata.Get("service.name")[0] {
			case "bad":
				return consumererror.NewPermanent(errors.New("never"))
			case "away":
				return errors.New("unavailable")
			}
			return nil
		})
		p, metric := newCounted(t, next, func(c *Config) { splitByService(c); c.RetryOnFailure.MaxElapsedTime = time.Minute })
		for range 50 {
			for _, name := range []string{"bad", "away", "good"} {
				require.NoError(t, p.ConsumeProfiles(t.Context(), service(name, 1)))
			}
			time.Sleep(1500 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		require.EqualValues(t, 50, metric("outgoing_samples", ""))
		require.EqualValues(t, 50, metric("dropped_samples", string(reasonPermanent)))
		require.EqualValues(t, 50, metric("dropped_samples", string(reasonRetriesExhausted)))
		require.Zero(t, p.retained())
		require.NoError(t, p.Shutdown(t.Context()))
	})
}
