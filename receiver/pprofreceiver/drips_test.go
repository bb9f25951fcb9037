// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
)

// drip is a kind of slow client.
type drip int

const (
	dripsHeaders drip = iota // a byte now and then
	dripsBody
	stopsInHeaders
	stopsInBody
	neverReads // pushes repeatedly, and does not read responses
	dripKinds
)

// run runs the client until the server closes the connection. It returns the status of the response,
// or 0.
func (kind drip) run(t *testing.T, b *testReceiver, w protocol, profile []byte, dial dialer) int {
	const pause = time.Second
	time.Sleep(rand.N(pause)) // so that they do not all start at once
	conn, err := dial(t.Context(), "tcp", b.server.Addr().String())
	if !assert.NoError(t, err) {
		return 0
	}
	defer func() { _ = conn.Close() }() // the server may have closed it
	body, headers := w.wrap(t, profile)
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", w.path, len(body))
	for i := 0; i < len(headers); i += 2 {
		head += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	head += "\r\n"

	if kind == neverReads {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(1) // the least
		}
		for err == nil && !b.stopDrips.Load() {
			_, err = io.WriteString(conn, head+string(body))
			time.Sleep(pause)
		}
		return 0
	}
	answered := make(chan int, 1)
	go func() {
		status := 0
		if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
			status = response.StatusCode
			_ = response.Body.Close() // nothing more comes
		}
		answered <- status
	}()
	next, rest := head[:1], head[1:]
	if kind == dripsBody || kind == stopsInBody {
		next, rest = head, string(body)
	}
	for len(rest) > 1 { // the last byte never comes
		if _, err := io.WriteString(conn, next); err != nil || kind == stopsInHeaders || kind == stopsInBody {
			break
		}
		select {
		case status := <-answered:
			return status
		case <-time.After(pause):
		}
		next, rest = rest[:1], rest[1:]
	}
	return <-answered
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Slow clients are disconnected, and do not delay others. In a soak test the network is a real one,
// otherwise one in memory.
func TestDrippingClients_R11(t *testing.T) {
	full, limit := profiletest.Soak(t)
	if full {
		b := newTestReceiver(t, serverYAML, consumertest.NewNop())
		b.beDrippedAt(t, 500, cmp.Or(limit, time.Minute), new(net.Dialer).DialContext)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		b := newTestReceiver(t, "server: {endpoint: 127.0.0.1:0, read_timeout: 5s, read_header_timeout: 5s}", consumertest.NewNop())
		network := make(pipes)
		b.server.Listen = func(context.Context) (net.Listener, error) { return network, nil }
		b.client.Transport.(*http.Transport).DialContext = network.dial
		b.beDrippedAt(t, 60, 6*time.Second, network.dial)
	})
}

// beDrippedAt starts b, and pushes to it for this time, while slow clients are connected. connections
// counts those that are open, or all open files.
func (b *testReceiver) beDrippedAt(t *testing.T, clients int, duration time.Duration, dial dialer) {
	b.start()
	profile := profiletest.Pprof(t, profiletest.CPUPprof("/bin/app", 1))
	good := profiletest.Gzip(t, profile)
	idle := b.pushFor(t, duration/4, good)

	goroutines, open := runtime.NumGoroutine(), openFiles()
	var dripping sync.WaitGroup
	for i := range clients {
		kind, w := drip(i)%dripKinds, protocols[i%len(protocols)]
		dripping.Go(func() {
			start := time.Now()
			status := kind.run(t, b, w, profile, dial)
			switch kind {
			case dripsBody, stopsInBody:
				want := http.StatusRequestTimeout
				if w.path == httpserver.PushPath {
					want = http.StatusGatewayTimeout
				}
				assert.Equal(t, want, status, "kind %d by %s", kind, w.name)
			case dripsHeaders, stopsInHeaders:
				assert.Contains(t, []int{0, http.StatusBadRequest, http.StatusRequestTimeout}, status, "kind %d by %s", kind, w.name)
			}
			if kind != neverReads {
				assert.Less(t, time.Since(start), 36*time.Second, "kind %d by %s", kind, w.name)
			}
		})
	}
	busy := b.pushFor(t, duration, good)
	b.stopDrips.Store(true)
	dripping.Wait()
	assert.Less(t, busy, 2*max(idle, 5*time.Millisecond), "p99 of good pushes beside dripping clients")
	// The client of a running handler may be gone.
	assert.Eventually(t, func() bool { return b.inFlight.InUse() == 0 }, time.Minute, time.Millisecond)
	b.client.CloseIdleConnections()
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines && openFiles() <= open }, time.Minute, 50*time.Millisecond,
		"goroutines were %d, open files %d", goroutines, open)
	profiletest.Injected(t, fmt.Sprintf("%d clients that drip, stop or never read", clients))
}

// pushFor pushes 50 times a second, in all protocols in turn. All pushes must be accepted. It returns
// the 99th percentile of their duration.
func (b *testReceiver) pushFor(t *testing.T, duration time.Duration, profile []byte) time.Duration {
	t.Helper()
	var took []time.Duration
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for i := range int(duration / (20 * time.Millisecond)) {
		<-ticker.C
		w := protocols[i%len(protocols)]
		start := time.Now()
		require.Equal(t, w.success, b.sendBy(w, profile).status)
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// openFiles is the number of open file descriptors, or 0 if it is unknown.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
