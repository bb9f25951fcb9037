// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	t                         *testing.T
	sender, gateway           *member
	start, startGateway       func() *member
	senderKills, gatewayKills int
}

func newChain(t *testing.T, config, data string, variables env, args ...string) *chain {
	t.Helper()
	listen, gatewayData := freeAddress(t), t.TempDir()
	all := env{"DATA_DIR": data, "GATEWAY_ENDPOINT": listen}
	maps.Copy(all, variables)
	args = slices.Concat(quick[config], args)
	c := &chain{t: t}
	c.start = func() *member { return runConfig(t, program(t), config, all, args...) }
	c.startGateway = func() *member { return gateway(t, listen, env{"DATA_DIR": gatewayData}) }
	c.sender, c.gateway = c.start(), c.startGateway()
	return c
}

// kills kills sender and gateway n times, at random times.
func (c *chain) kills(n int, random *rand.Rand) {
	pause := func() { time.Sleep(time.Duration(100+random.IntN(400)) * time.Millisecond) }
	for range n {
		pause()
		c.sender.kill()
		c.sender = c.start()
		c.senderKills++
		pause()
		c.away(0)
	}
}

// away kills the gateway, and starts it again after a while.
func (c *chain) away(d time.Duration) {
	c.gateway.kill()
	c.gatewayKills++
	time.Sleep(d)
	c.gateway = c.startGateway()
}

// finish waits until all is sent, and stops both. It returns what was done to them.
func (c *chain) finish() string {
	c.t.Helper()
	c.sender.awaitSent(c.t)
	c.sender.stop(c.t) // writes the last window
	c.sender = c.start()
	c.sender.awaitSent(c.t)
	c.sender.stop(c.t)
	c.gateway.stop(c.t)
	return fmt.Sprintf("%d SIGKILL of the sender, %d of the gateway", c.senderKills, c.gatewayKills)
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
	for range fills {
		if mounted {
			filler := filepath.Join(disk, "filler")
			fill(t, filler)
			time.Sleep(time.Duration(100+random.IntN(900)) * time.Millisecond)
			require.NoError(t, os.Remove(filler))
			time.Sleep(time.Duration(100+random.IntN(200)) * time.Millisecond)
		}
	}
	c.away(away)
	cancel()
	wait()
	injected := c.finish()
	// Each client has one push in a window, and each request has one window.
	l.verify(t, c.gateway.files, injected, c.gatewayKills*requestsInFlight*clients)
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
			drop(t, inbox, fmt.Sprintf("service-%d", n), "cpu.pb.gz", body)
			time.Sleep(max(20*time.Millisecond, away/1000))
		}
	}()
	c.kills(kills, random)
	c.away(away)
	cancel()
	n := <-written
	c.sender.awaitFor(t, 2*time.Minute+patience, "all files", func() bool { return len(totalsOf(c.gateway.written(t))) == n })
	injected := c.finish()
	doubled, readable := 0, 0
	for _, sum := range totalsOf(c.gateway.written(t)) {
		readable++
		if sum > 1 {
			doubled++
		}
	}
	assert.LessOrEqual(t, doubled, c.gatewayKills*requestsInFlight, "files that are there more than once")
	assert.Equal(t, n, readable, "files at the gateway")
	profiletest.Account(t, injected, n, readable, 0)
}
