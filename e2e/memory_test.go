// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// containerLimit is the limit of the sidecar's container in deploy/kubernetes.
const containerLimit = 256 << 20

// contained runs a shipped configuration in a container.
func contained(t *testing.T, box *container, config string, variables env, args ...string) *member {
	t.Helper()
	all := env{"DATA_DIR": t.TempDir(), "PPROF_LISTEN": freeAddress(t), "SERVICE_NAME": "checkout", "HOSTNAME": "checkout-0"}
	maps.Copy(all, variables)
	path, args := box.command(program(t), args...)
	return runConfig(t, path, config, all, args...)
}

// limitedSidecar runs the sidecar without changes. Its gateway is away, unless something listens at
// that address.
func limitedSidecar(t *testing.T, box *container, gateway string, variables env, args ...string) *member {
	t.Helper()
	all := env{"GATEWAY_ENDPOINT": gateway}
	maps.Copy(all, variables)
	return contained(t, box, "sidecar.yaml", all, args...)
}

// pushWithRetries pushes by a way until the response is final, and retries five times, a second
// apart. It returns the last status, and whether that asks for another retry. It is safe for concurrent use.
func pushWithRetries(t *testing.T, url string, way wayToPush, body []byte) (status int, retry bool) {
	t.Helper()
	for retries := 0; ; retries++ {
		status, retry = way.post(t, url, body)
		if !retry || retries == 5 {
			return status, retry
		}
		time.Sleep(time.Second)
	}
}

// requireAnswer pushes by a way. The push must be accepted, or answered with 413, within five
// retries. It returns whether it was accepted.
func requireAnswer(t *testing.T, c *member, way wayToPush, what string, body []byte) (accepted bool) {
	t.Helper()
	status, retry := pushWithRetries(t, c.url, way, body)
	if status != way.success && (status != way.tooLarge || retry) {
		t.Errorf("%s (%d bytes) by %s: %d; must be accepted or 413", what, len(body), way.path, status)
	}
	return status == way.success
}

// requireSmallPush pushes a small profile, which must be accepted within five retries.
func requireSmallPush(t *testing.T, c *member, after string) {
	t.Helper()
	status, _ := pushWithRetries(t, c.url, plainPush(t), numbered(t, times.Add(1)))
	assert.Equal(t, http.StatusNoContent, status, "a small push %s must be accepted", after)
}

func plainPush(t *testing.T) wayToPush {
	t.Helper()
	return waysToPush(t)[0]
}

// smallPushesBeside pushes a small profile every 50 ms while do runs.
func smallPushesBeside(t *testing.T, c *member, what string, do func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var pushing sync.WaitGroup
	pushing.Go(func() {
		for ctx.Err() == nil {
			pushing.Go(func() { requireSmallPush(t, c, "beside "+what) })
			time.Sleep(50 * time.Millisecond)
		}
	})
	do()
	cancel()
	pushing.Wait()
}

// TestSidecarStaysWithinItsContainer_M1 pushes valid profiles of all sizes to the shipped sidecar,
// whose gateway is away. Each is accepted or rejected permanently, small pushes are always accepted
// soon, and the process stays within its container.
func TestSidecarStaysWithinItsContainer_M1(t *testing.T) {
	// Not beside other tests: five retries are a bound on the time.
	sizes := []int{5000, 50_000, 200_000, 550_000}
	rounds, atOnce, beside := 1, 8, 2*time.Second
	if full, _ := profiletest.Soak(t); full {
		sizes = []int{5000, 10_000, 20_000, 50_000, 75_000, 100_000, 150_000, 200_000, 300_000, 400_000, 550_000}
		rounds, atOnce, beside = 3, 16, 60*time.Second
	}
	var bodies, together [][]byte
	for _, samples := range sizes {
		bodies = append(bodies, distinctProfile(t, samples))
	}
	for range atOnce {
		together = append(together, distinctProfile(t, 20_000))
	}
	largest := bodies[len(bodies)-1]
	for _, memory := range []env{{"GOMEMLIMIT": "200MiB"}, nil} {
		t.Run("GOMEMLIMIT="+memory["GOMEMLIMIT"], func(t *testing.T) {
			box := newContainer(t, containerLimit)
			s := limitedSidecar(t, box, freeAddress(t), memory)
			injected := 0
			for range rounds {
				for i, samples := range sizes {
					requireAnswer(t, s, plainPush(t), fmt.Sprintf("%d samples", samples), bodies[i])
					requireSmallPush(t, s, fmt.Sprintf("after %d samples", samples))
					box.requireAlive(t, s.collector)
					injected++
				}

				var pushing sync.WaitGroup
				for _, body := range together {
					pushing.Go(func() { requireAnswer(t, s, plainPush(t), "20000 samples, many at once", body) })
				}
				pushing.Wait()
				requireSmallPush(t, s, "after many at once")
				injected += len(together)
			}

			for _, sent := range []int{0, 1 << 20, 63<<20 - 1} {
				smallPushesBeside(t, s, fmt.Sprintf("four that stall after %d bytes", sent), func() {
					for range 4 {
						conn := stall(t, s.url, 63<<20, sent)
						defer conn.Close()
					}
					time.Sleep(beside)
				})
			}
			smallPushesBeside(t, s, "a client that resends", func() {
				for end := time.Now().Add(beside); time.Now().Before(end); time.Sleep(time.Second) {
					plainPush(t).send(t, s.url, largest)
				}
			})
			requireSmallPush(t, s, "at the end")
			peak := box.requireWithinLimit(t, s.collector)
			profiletest.Injected(t, fmt.Sprintf("%d large profiles, 12 stalled requests, peak of %d MiB", injected, peak))
		})
	}
}

// TestBombsOfTinyEntriesAreBounded_M3 pushes bombs by each protocol to the sidecar.
func TestBombsOfTinyEntriesAreBounded_M3(t *testing.T) {
	parallel(t)
	bombs := tinyEntries(t, maxDecompressedSize)
	names := slices.Sorted(maps.Keys(bombs))
	box := newContainer(t, containerLimit)
	s := limitedSidecar(t, box, freeAddress(t), nil)
	rounds := profiletest.Rounds(t, 1, 5)
	for range rounds {
		for _, way := range waysToPush(t) {
			for _, name := range names {
				requireAnswer(t, s, way, name, bombs[name])
				requireSmallPush(t, s, "after a bomb of "+name)
				box.requireAlive(t, s.collector)
			}
		}
	}
	var together sync.WaitGroup
	for i, way := range slices.Repeat(waysToPush(t), 4) {
		name := names[i%len(names)]
		together.Go(func() { requireAnswer(t, s, way, name+" at once", bombs[name]) })
	}
	together.Wait()
	requireSmallPush(t, s, "after bombs at once")
	peak := box.requireWithinLimit(t, s.collector)
	profiletest.Injected(t, fmt.Sprintf("%d bombs, peak of %d MiB", rounds*len(names)*4+16, peak))
}

// stall begins a push that announces a body, sends a part of it, and nothing after that. What the
// server refuses to read is not sent.
func stall(t *testing.T, url string, announced, sent int) net.Conn {
	t.Helper()
	host := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", host)
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "POST /v1/pprof HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", host, announced)
	require.NoError(t, err)
	if sent > 0 {
		// Up to here it looks like a pprof with a large string, without compression.
		part := slices.Concat([]byte{profileStrings<<3 | 2, 0xff, 0xff, 0xff, 0x1d}, make([]byte, sent-5))
		_ = conn.SetWriteDeadline(time.Now().Add(3 * time.Second))
		_, _ = conn.Write(part) // an error is a server that does not want more
	}
	return conn
}

// TestWhatIsAcceptedCanBeSentAndGrowsWithTheContainer_M1_M5 runs one configuration in containers of all sizes, beside a gateway. The
// largest profile that is accepted grows with the container. Small containers have the memory to send each of them.
func TestWhatIsAcceptedCanBeSentAndGrowsWithTheContainer_M1_M5(t *testing.T) {
	parallel(t)
	sizes := []int{5000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 80_000, 160_000, 320_000}
	bodies := make([][]byte, len(sizes))
	for i, samples := range sizes {
		bodies[i] = distinctProfile(t, samples)
	}
	var largest []int
	for _, limit := range []int64{128 << 20, 256 << 20, 1 << 30, 8 << 30} {
		listen, box := freeAddress(t), newContainer(t, limit)
		g := gateway(t, listen, nil)
		s := limitedSidecar(t, box, listen, nil, "--set=processors.profiles_dedup.window=1s", "--set=receivers.profiles_file.poll_interval=50ms")
		accepted, last := 0, 0
		for i, samples := range sizes {
			if requireAnswer(t, s, plainPush(t), fmt.Sprintf("%d samples", samples), bodies[i]) {
				accepted, last = accepted+samples, samples
			}
		}
		requireSmallPush(t, s, "at the end")
		if limit <= containerLimit { // on a busy machine, sending the largest windows takes long
			s.awaitSent(t)
			s.await(t, "the last window", func() bool { return g.metric(t, "otelcol_receiver_accepted_profile_samples") > accepted })
			s.awaitSent(t)
			assert.False(t, hasFiles(t, filepath.Join(filepath.Dir(s.files), "rejected")), "the sidecar of %d MiB could not send all windows:\n%s", limit>>20, s.logs)
		}
		box.requireWithinLimit(t, s.collector)
		largest = append(largest, last)
		s.kill()
		g.kill()
	}
	t.Logf("largest accepted profiles: %v samples", largest)
	for i, accepted := range largest {
		if i > 0 && accepted < 2*largest[i-1] && accepted < sizes[len(sizes)-1] {
			t.Errorf("container %d accepts %d samples, the smaller one %d", i, accepted, largest[i-1])
		}
	}
	assert.NotZero(t, largest[0])
	assert.Equal(t, sizes[len(sizes)-1], largest[len(largest)-1], "samples that the largest container accepts")
	profiletest.Injected(t, fmt.Sprintf("%d containers", len(largest)))
}
