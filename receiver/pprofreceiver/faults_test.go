// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// numbered is samplePprof with a label that is unique.
func numbered(value int64) *profile.Profile {
	p := profiletest.CPUPprof("/bin/app", value)
	p.Sample[0].Label = map[string][]string{"id": {strconv.FormatInt(value, 10)}}
	return p
}

// arrivedValues are the values of the sample type samples, by the label id.
func arrivedValues(t testing.TB, s *sink) map[int64]int64 {
	t.Helper()
	values, ids := map[int64]int64{}, map[string]bool{}
	for _, p := range profiletest.Expand(t, s.AllProfiles()...) {
		assert.False(t, ids[p.ProfileID], "%s came twice", p.ProfileID)
		ids[p.ProfileID] = true
		for _, sample := range p.Samples {
			if p.Type == "samples" {
				id, err := strconv.ParseInt(expand.Text(sample.Attributes, "id"), 10, 64)
				require.NoError(t, err)
				values[id] += sample.Sum.Int64()
			}
		}
	}
	return values
}

// Any bytes get a response, and accepted payloads conform, which the sink checks.
func TestEveryPrefixAndFlippedBits_R1(t *testing.T) {
	full, _ := profiletest.Soak(t)
	data := profiletest.Pprof(t, numbered(3))
	for _, w := range protocols {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			b := startTestReceiver(t, serverYAML, &sink{t: t})
			sent := 0
			answered := func(what string, body []byte) {
				sent++
				got := b.sendBy(w, body)
				assert.Contains(t, []int{w.success, 400}, got.status, "%s: %s", what, got.body)
			}
			for n := range data {
				answered(fmt.Sprintf("the first %d bytes", n), data[:n])
			}
			zipped := profiletest.Gzip(t, data)
			for n := range zipped {
				assert.Equal(t, 400, b.sendBy(w, zipped[:n]).status, "the first %d bytes of gzip", n)
			}
			for i := range data {
				for bit := range 8 {
					if bit != i%8 && !full {
						continue // one bit of each byte
					}
					flipped := slices.Clone(data)
					flipped[i] ^= 1 << bit
					answered(fmt.Sprintf("bit %d of byte %d", bit, i), flipped)
				}
			}
			sent += len(zipped)
			// Also of the body around the profile.
			body, headers := w.wrap(t, data)
			for i := range body {
				flipped := slices.Clone(body)
				flipped[i] ^= 1 << (i % 8)
				got := b.post(w.path, flipped, headers...)
				// A flipped name may make another format, a flipped length a limit.
				assert.Contains(t, []int{w.success, 400, 413, 415, 429, 501}, got.status, "byte %d: %s", i, got.body)
			}
			profiletest.Injected(t, fmt.Sprintf("%d prefixes and flipped bits, %d flipped bits of protocols", sent, len(body)))
			assert.Zero(t, b.inFlight.InUse())
			assert.Empty(t, b.logs.FilterMessageSnippet("Panic").All())
		})
	}
}

// bombs returns small bodies that decompress to at least 16 MiB.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	zeros := make([]byte, 8<<20)
	member, frame := profiletest.Gzip(t, zeros), profiletest.Zstd(t, zeros)
	members := slices.Repeat(member, 8)
	return map[string][]byte{
		"gzip of one member":   profiletest.Gzip(t, slices.Repeat(zeros, 2)),
		"gzip of many members": members,
		"gzip in gzip":         profiletest.Gzip(t, members),
		"gzip in zstd":         profiletest.Zstd(t, members),
		"zstd of one frame":    profiletest.Zstd(t, slices.Repeat(zeros, 2)),
		"zstd of many frames":  slices.Repeat(frame, 8),
		"zstd stream":          profiletest.ZstdStream(t, slices.Repeat(zeros, 2)),
		"zstd in gzip in gzip": profiletest.Gzip(t, profiletest.Gzip(t, slices.Repeat(frame, 8))),
		"lz4":                  profiletest.LZ4(t, slices.Repeat(zeros, 2)),
		"lz4 in gzip":          profiletest.Gzip(t, profiletest.LZ4(t, slices.Repeat(zeros, 2))),
	}
}

// Bombs are rejected with the memory of the limit, not of the bomb.
func TestBombsAreRejected_R2(t *testing.T) {
	b := startTestReceiver(t, "server: {endpoint: 127.0.0.1:0, max_decompressed_size: 4MiB}\nmax_in_flight: 32MiB", &sink{t: t})
	for _, w := range protocols {
		for name, bomb := range bombs(t) {
			t.Run(w.name+", "+name, func(t *testing.T) {
				var got answer
				allocated := profiletest.AllocatedBy(func() { got = b.sendBy(w, bomb) })
				profiletest.Injected(t, "1 bombs")
				assert.Contains(t, []int{w.tooLarge(), http.StatusTooManyRequests}, got.status, got.body)
				assert.Contains(t, got.body, "limit of 4194304")
				// lz4 makes blocks of up to 8 MiB, once for several bombs.
				assert.Less(t, allocated, uint64(48<<20), "bytes allocated for a limit of 4 MiB")
			})
		}
	}
	assert.Zero(t, b.inFlight.InUse())
}

// pushAll pushes profiles of the values from 1 on by some clients, each until it is accepted or permanently rejected. It
// checks that accepted ones arrived once and others not, and returns the numbers of both.
func (b *testReceiver) pushAll(next *sink, clients, profiles int, by func(id int64) protocol) (accepted, rejected int) {
	b.t.Helper()
	isAccepted := make([]bool, profiles+1)
	var turn atomic.Int64
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for id := turn.Add(1); id <= int64(profiles); id = turn.Add(1) {
				w, body := by(id), profiletest.Gzip(b.t, profiletest.Pprof(b.t, numbered(id)))
				got := b.sendBy(w, body)
				for ; got.status == http.StatusServiceUnavailable; got = b.sendBy(w, body) {
					assert.NotEmpty(b.t, got.header.Get("Retry-After"))
				}
				isAccepted[id] = got.status == w.success
				assert.Contains(b.t, []int{w.success, http.StatusInternalServerError}, got.status)
			}
		})
	}
	running.Wait()
	want := map[int64]int64{}
	for id, ok := range isAccepted {
		if ok {
			want[int64(id)] = int64(id)
		}
	}
	assert.Equal(b.t, want, arrivedValues(b.t, next))
	assert.Zero(b.t, b.inFlight.InUse())
	return len(want), profiles - len(want)
}

// The Collector's contract for receivers (CheckConsumeContract of receivertest, which has no profiles),
// in each protocol. The consumer returns errors at random, and the client retries after retryable ones.
// Each acknowledged profile arrives once, and permanently rejected ones do not.
func TestConsumeContract_R10(t *testing.T) {
	seed, count := profiletest.Seed(t), profiletest.Rounds(t, 15, 1000)
	var (
		errNow   = errors.New("temporarily rejected")
		errNever = consumererror.NewPermanent(errors.New("permanently rejected"))
	)
	for _, w := range protocols {
		for name, answers := range map[string][]error{
			"retryable errors":  {nil, errNow},
			"permanent errors":  {nil, errNever},
			"either error":      {nil, errNow, errNever},
			"always permanent":  {errNever},
			"mostly retryable":  {nil, errNow, errNow, errNow},
			"joined with other": {nil, errors.Join(errNow, errNow)},
		} {
			t.Run(w.name+", "+name, func(t *testing.T) {
				t.Parallel()
				next := &sink{t: t}
				var mu sync.Mutex
				errs := 0
				random := rand.New(rand.NewPCG(seed, 0))
				b := startTestReceiver(t, serverYAML, consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
					mu.Lock()
					err := answers[random.IntN(len(answers))]
					if err != nil {
						errs++
					}
					mu.Unlock()
					if err != nil {
						return err
					}
					return next.ConsumeProfiles(ctx, pd)
				}))
				accepted, _ := b.pushAll(next, 4, count, func(int64) protocol { return w })
				profiletest.Account(t, fmt.Sprintf("%d rejections by the consumer", errs), accepted, len(arrivedValues(t, next)), 0)
			})
		}
	}
}

// With many clients in all protocols, the sum is exact.
func TestSumIsExactWithManyClients_R12(t *testing.T) {
	const clients = 64
	next := &sink{t: t}
	var calls atomic.Int64
	b := startTestReceiver(t, serverYAML, consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
		switch call := calls.Add(1); {
		case call%5 == 0:
			return errors.New("not now")
		case call%17 == 0:
			return consumererror.NewPermanent(errors.New("never"))
		}
		return next.ConsumeProfiles(ctx, pd)
	}))
	accepted, rejected := b.pushAll(next, clients, clients*profiletest.Rounds(t, 12, 157), func(id int64) protocol { return protocols[id%int64(len(protocols))] })
	assert.NotZero(t, rejected)
	profiletest.Account(t, fmt.Sprintf("%d clients, %d calls of the consumer of which some fail", clients, calls.Load()), accepted, len(arrivedValues(t, next)), 0)
}

// A panic gets a response and affects no other request, also if several goroutines pass the profiles of
// a request.
func TestPanicIsAnswered_R13(t *testing.T) {
	pushes := profiletest.Rounds(t, 200, 1000)
	several := protocol{"datadog, several", http.StatusAccepted, httpserver.DatadogPath, func(t testing.TB, profile []byte) ([]byte, []string) {
		t.Helper()
		return profiletest.Form(t, attached("cpu.pprof", profile), attached("heap.pprof", profile), event("{}"))
	}}
	for _, w := range append(slices.Clone(protocols), several) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			next := &sink{t: t}
			var calls atomic.Int64
			b := startTestReceiver(t, serverYAML, consumer(t, func(ctx context.Context, pd pprofile.Profiles) error {
				if calls.Add(1) == 1 {
					explode()
				}
				return next.ConsumeProfiles(ctx, pd)
			}))
			body := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
			got := b.sendBy(w, body)
			assert.Equal(t, http.StatusInternalServerError, got.status)
			b.assertPanicLogged()
			if w.name == several.name {
				assert.Len(t, next.AllProfiles(), 1, "the other profile is accepted")
			}
			assert.Contains(t, got.body, "internal error")
			assert.NotContains(t, got.body, "out of the blue")
			assert.Zero(t, b.inFlight.InUse())
			for range pushes {
				require.Equal(t, w.success, b.sendBy(w, body).status)
			}
			assert.Equal(t, map[string]int64{"500": 1, strconv.Itoa(w.success): int64(pushes)}, b.counts("otelcol_receiver_pprof_requests", "http.response.status_code"))
			profiletest.Injected(t, fmt.Sprintf("1 panics, %d pushes after them", pushes))
			assert.Equal(t, map[string]int64{"panic": 1}, b.counts("otelcol_receiver_pprof_rejected_requests", "reason"))
			assert.NotEmpty(t, b.counts("otelcol_receiver_refused_profile_samples", "receiver"), "the operation of the panic has ended")
		})
	}
}

// Secrets are in no log, response or metric, in any protocol and for any outcome.
func TestSecretsAreNotShown_R16(t *testing.T) {
	const secret = "s3cret"
	good := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
	for _, next := range []error{nil, errors.New("not now")} {
		b := newTestReceiver(t, "server: {endpoint: 127.0.0.1:0, auth: {authenticator: doorman, request_params: [password]}}", consumertest.NewErr(next))
		require.NoError(t, b.Start(t.Context(), profiletest.Host{doormanID: doorman{}}))
		headers := []string{"DD-API-KEY", secret, "Authorization", "Bearer " + secret, "Cookie", secret, "X-Scope-OrgID", secret}
		var answers []answer
		for _, w := range protocols {
			for _, profile := range [][]byte{good, good[:20], []byte("FLR\x00"), nil} {
				for _, password := range []string{"sesame", secret} {
					join := "?"
					if strings.Contains(w.path, "?") {
						join = "&"
					}
					body, wireHeaders := w.wrap(t, profile)
					for _, query := range []string{"password=" + password, "password=" + password + "&token=" + secret + "&from=" + secret + "&name=%7B" + secret, "password=" + password + "&a.b=" + secret + "&a.b=" + secret + "&until=" + secret, "password=" + password + "&a.b=" + secret + "%zz"} {
						got := b.post(w.path+join+query, body, append(wireHeaders, headers...)...)
						answers = append(answers, got)
					}
				}
			}
		}
		profiletest.Injected(t, fmt.Sprintf("%d requests with secrets", len(answers)))
		for _, got := range answers {
			assert.NotContains(t, got.body, secret)
			assert.NotContains(t, fmt.Sprint(got.header), secret)
		}
		require.NotZero(t, b.logs.FilterMessage("Rejected request").Len())
		accepted := slices.ContainsFunc(answers, func(a answer) bool { return a.status == http.StatusNoContent })
		assert.Equal(t, next == nil, accepted, "a parameter of the authenticator is no attribute")
		b.requireNoSecrets(secret)
		require.NoError(t, b.Shutdown(context.Background()))
	}
}

// Repairs are counted. A timestamp outside the time of a profile is kept.
func TestRepairsAreCounted_R7_R9(t *testing.T) {
	p := profiletest.CPUPprof("/bin/app", 1)
	start := time.Now()
	p.TimeNanos, p.DurationNanos = -5, -6
	p.Function[0].Name = "bad \xff name"
	p.Function[0].SystemName = "bad \xff name"
	p.Sample = append(p.Sample, &profile.Sample{Location: p.Location, Value: []int64{2, 2}, NumLabel: map[string][]int64{"end_timestamp_ns": {5}}})
	for _, w := range protocols {
		next := &sink{t: t}
		b := startTestReceiver(t, serverYAML, next)
		require.Equal(t, w.success, b.sendBy(w, profiletest.Pprof(t, p)).status)
		profiletest.Injected(t, "1 profiles to repair")
		assert.Equal(t, map[string]int64{"invalid_utf8": 1, "negative_time": 2, "timestamp_outside": 2}, b.counts("otelcol_receiver_pprof_repairs", "repair"), w.name)
		v := arrivals(t, next.only())[0]
		assert.WithinRange(t, time.Unix(0, int64(v.time)), start, time.Now(), "a time below 0 is a missing one")
		assert.Zero(t, v.duration)
	}
}

func TestRejectionsOfTheHTTPServer(t *testing.T) {
	b := newTestReceiver(t, "server: {endpoint: 127.0.0.1:0, auth: {authenticator: doorman}}", consumertest.NewNop())
	require.NoError(t, b.Start(t.Context(), profiletest.Host{doormanID: doorman{}}))
	defer func() { require.NoError(t, b.Shutdown(context.Background())) }()
	for _, w := range protocols {
		got := b.sendBy(w, nil)
		assert.Equal(t, http.StatusUnauthorized, got.status, w.name)
		want := `"code":16`
		if w.path == httpserver.PushPath {
			want = `"code":"unauthenticated"`
		}
		assert.Contains(t, got.body, want, w.name)
	}
	assert.Equal(t, map[string]int64{"unauthorized": int64(len(protocols))}, b.counts("otelcol_receiver_pprof_rejected_requests", "reason"))
	assert.Equal(t, map[string]int64{"/v1/pprof": 1, "/ingest": 2, httpserver.PushPath: 2, httpserver.DatadogPath: 1}, b.counts("otelcol_receiver_pprof_requests", "endpoint"))
}

// tooLarge is the status of a request that exceeds a limit.
func (w protocol) tooLarge() int {
	if strings.HasPrefix(w.name, "connect") {
		return http.StatusBadRequest
	}
	return http.StatusRequestEntityTooLarge
}
