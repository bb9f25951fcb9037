// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// requestsInFlight is how many requests a sidecar or agent sends at a time: concurrency of its
// profiles_file receiver.
const requestsInFlight = 8

// chain is a sidecar or agent that stores and forwards to a gateway. Either can be killed.
type chain struct {
	t              *testing.T
	sender         *member
	gateway        *member
	start          func() *member
	startGateway   func() *member
	gatewayKills   int
	senderKills    int
	phase          time.Time
	injected, data string
}

func newChain(t *testing.T, config, data string, variables env, args ...string) *chain {
	t.Helper()
	listen, gatewayData := freeAddress(t), t.TempDir()
	all := env{"DATA_DIR": data, "GATEWAY_ENDPOINT": listen}
	for name, value := range variables {
		all[name] = value
	}
	args = append(append([]string{}, quick[config]...), args...)
	c := &chain{t: t, data: data, phase: time.Now()}
	c.start = func() *member { return runConfig(t, program(t), config, all, args...) }
	c.startGateway = func() *member { return gateway(t, listen, env{"DATA_DIR": gatewayData}) }
	c.sender, c.gateway = c.start(), c.startGateway()
	return c
}

// kills kills sender or gateway, at random times.
func (c *chain) kills(n int, random *rand.Rand) {
	for i := range 2 * n {
		time.Sleep(time.Duration(100+random.IntN(400)) * time.Millisecond)
		if i%2 == 0 {
			c.sender.kill()
			c.sender = c.start()
			c.senderKills++
		} else {
			c.gateway.kill()
			c.gateway = c.startGateway()
			c.gatewayKills++
		}
	}
	c.log("%d SIGKILL of each", n)
}

// fills fills the disk of the sender, and frees it.
func (c *chain) fills(n int, random *rand.Rand) {
	filler := filepath.Join(c.data, "filler")
	for range n {
		fill(c.t, filler)
		time.Sleep(time.Duration(100+random.IntN(900)) * time.Millisecond)
		require.NoError(c.t, os.Remove(filler))
		time.Sleep(time.Duration(100+random.IntN(200)) * time.Millisecond)
	}
	c.log("%d times a full disk", n)
}

// away kills the gateway, and starts it again after a while.
func (c *chain) away(d time.Duration) {
	c.gateway.kill()
	c.gatewayKills++
	time.Sleep(d)
	c.gateway = c.startGateway()
	c.log("gateway away for %s", d)
}

// log logs the time of a phase.
func (c *chain) log(what string, arguments ...any) {
	c.t.Helper()
	what = fmt.Sprintf(what, arguments...)
	c.t.Logf("%s: took %s", what, time.Since(c.phase).Round(time.Millisecond))
	if c.injected != "" {
		c.injected += ", "
	}
	c.injected += what
	c.phase = time.Now()
}

// finish waits until all is sent, and stops both.
func (c *chain) finish() {
	c.t.Helper()
	c.sender.awaitSent(c.t)
	c.sender.stop(c.t) // writes the last window
	c.sender = c.start()
	c.sender.awaitSent(c.t)
	c.log("sending the rest")
	c.sender.stop(c.t)
	c.gateway.stop(c.t)
}

// outages are the counts of a test: few, or all under SOAK.
func outages(t *testing.T) (kills, fills int, away time.Duration) {
	t.Helper()
	full, limit := profiletest.Soak(t)
	switch {
	case !full:
		return 3, 2, 3 * time.Second
	case limit > 0:
		return 50, 10, min(10*time.Minute, limit)
	}
	return 50, 10, 10 * time.Minute
}

// TestStoreAndForwardLosesNothing_P10_E14 kills the sidecar and the gateway, fills the disk of the
// sidecar, and has the gateway away, while clients push with acknowledge: on_flush. The gateway has all
// acknowledged profiles, and once: apart from requests that a killed gateway had written and not
// answered.
func TestStoreAndForwardLosesNothing_P10_E14(t *testing.T) {
	parallel(t)
	kills, fills, away := outages(t)
	seed := profiletest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	disk, mounted := smallDisk(t)
	listen := freeAddress(t)
	c := newChain(t, "sidecar.yaml", disk, env{"PPROF_LISTEN": listen, "ACKNOWLEDGE": "on_flush", "SERVICE_NAME": "shop"},
		"--set=processors.profiles_dedup.window=100ms")

	const clients = 8
	var l ledger
	ctx, cancel := context.WithCancel(t.Context())
	wait := l.clients(ctx, t, clients, c.sender.url, 2*time.Millisecond)
	c.kills(kills, random)
	if mounted {
		c.fills(fills, random)
	} else {
		t.Log("no tmpfs can be mounted here, it needs root")
	}
	c.away(away)
	cancel()
	wait()
	c.finish()
	// Each client has one push in a window, and each request has one window.
	l.verifyDoubled(t, c.gateway.files, c.injected, c.gatewayKills*requestsInFlight*clients)
}

// TestAgentForwardsItsFiles_R17 is the same for the files that an agent reads.
func TestAgentForwardsItsFiles_R17(t *testing.T) {
	parallel(t)
	kills, _, away := outages(t)
	seed := profiletest.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	inbox := t.TempDir()
	c := newChain(t, "agent.yaml", t.TempDir(), env{"FILES_DIR": inbox, "SCRAPE_ENDPOINT": "http://" + freeAddress(t)})
	body := profiletest.Gzip(t, numbered(t, 1))
	ctx, cancel := context.WithCancel(t.Context())
	written := make(chan int)
	go func() {
		n := 0
		defer func() { written <- n }()
		for ; ctx.Err() == nil; n++ {
			dir := filepath.Join(inbox, fmt.Sprintf("service-%d", n))
			path := filepath.Join(dir, "cpu.pb.gz")
			if os.Mkdir(dir, 0o700) != nil || os.WriteFile(path+".tmp", body, 0o600) != nil || os.Rename(path+".tmp", path) != nil {
				t.Error("cannot write the file of an agent")
				return
			}
			time.Sleep(max(20*time.Millisecond, away/1000))
		}
	}()
	c.kills(kills, random)
	c.away(away)
	cancel()
	n := <-written
	c.sender.awaitFor(t, 2*time.Minute+patience, "all files", func() bool { return len(totalsOf(c.gateway.written(t))) == n })
	c.finish()
	doubled, readable := 0, 0
	for service, sum := range totalsOf(c.gateway.written(t)) {
		readable++
		if sum > 1 {
			doubled++
			t.Logf("%s is there %d times", service, sum)
		}
	}
	assert.LessOrEqual(t, doubled, c.gatewayKills*requestsInFlight, "files that are there more than once")
	assert.Equal(t, n, readable, "files at the gateway")
	profiletest.Account(t, c.injected, n, readable, 0)
}

// TestWhatIsAcceptedCanBeSent_M1 pushes profiles up to the largest that a container accepts. The sidecar
// has the memory to send each of them.
func TestWhatIsAcceptedCanBeSent_M1(t *testing.T) {
	parallel(t)
	for _, limit := range []int64{128 << 20, containerLimit} {
		listen, box := freeAddress(t), newContainer(t, limit)
		g := gateway(t, listen, nil)
		s := limitedSidecar(t, box, listen, nil, "--set=processors.profiles_dedup.window=1s", "--set=receivers.profiles_file.poll_interval=50ms")
		accepted := 0
		for _, samples := range []int{5000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000} {
			if requireAnswer(t, s, plainPush(t), fmt.Sprintf("%d samples", samples), distinctProfile(t, samples)).status == http.StatusNoContent {
				accepted += samples
			}
		}
		s.awaitSent(t)
		s.await(t, "the last window", func() bool { return g.metric(t, "otelcol_receiver_accepted_profile_samples") >= accepted })
		s.awaitSent(t)
		assert.False(t, hasFiles(t, filepath.Join(filepath.Dir(s.files), "rejected")), "the sidecar of %d MiB could not send all windows:\n%s", limit>>20, s.logs)
		peak := box.requireWithinLimit(t, s.collector)
		profiletest.Injected(t, fmt.Sprintf("profiles of %d samples, peak of %d MiB", accepted, peak))
		s.stop(t)
		g.stop(t)
	}
}
