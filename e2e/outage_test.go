// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

// TestSidecarOutlastsAnAwayGateway_M2 pushes at the rated load while the gateway is away. Nothing is
// rejected, memory stays flat, and the windows wait on disk. The gateway then gets each of them once.
func TestSidecarOutlastsAnAwayGateway_M2(t *testing.T) {
	parallel(t)
	// Short windows and intervals: 5 windows wait.
	away, window, args := 5*time.Second, "500ms", []string{
		"--set=processors.profiles_dedup.window=1s",
		"--set=exporters.otlp_grpc.retry_on_failure.max_interval=1s",
	}
	if full, limit := profiletest.Soak(t); full {
		away, window, args = 10*time.Minute, "5s", nil
		if limit > 0 {
			away = min(away, limit)
		}
	}
	const services = 8
	var bodies []load.Body // not a divisor of services: each service sends all of them
	var sums []map[string]int64
	for seed := range 3 {
		built := profiletest.Workloads()[0].Pprof(uint64(seed))
		body, err := load.NewBody(profiletest.Gzip(t, profiletest.Pprof(t, built)))
		require.NoError(t, err)
		bodies, sums = append(bodies, body), append(sums, profiletest.Sums(built))
	}
	box, listen := newContainer(t, containerLimit), freeAddress(t)
	s := limitedSidecar(t, box, listen, nil, args...)
	result, err := load.Run(t.Context(), load.Options{
		URL: s.url + "/v1/pprof", Bodies: bodies, Clients: services, Services: services, Rate: ratedLoad, Duration: away, Timeout: patience,
	})
	require.NoError(t, err)
	box.requireAlive(t, s.collector)
	pushed := len(result.Latencies)
	if result.FirstError != nil || result.Accepted() != pushed {
		t.Errorf("%d of %d pushes were accepted: answers %v, first error: %v", result.Accepted(), pushed, result.Statuses, result.FirstError)
	}
	assert.NotZero(t, s.metric(t, "otelcol_receiver_profiles_file_waiting_bytes"), "bytes of files that wait")

	g := gateway(t, listen, nil, "--set=processors.profiles_dedup.window="+window)
	// The last window closes at the shutdown. The next start sends it.
	s.awaitSent(t)
	peak := box.requireWithinLimit(t, s.collector)
	s.stop(t)
	s = limitedSidecar(t, box, listen, env{"DATA_DIR": filepath.Dir(s.files)}, args...)
	s.awaitSent(t)
	s.stop(t)
	g.stop(t)
	want := map[string]int64{}
	for i := range pushed {
		for sampleType, sum := range sums[i%len(bodies)] {
			name, _, _ := strings.Cut(sampleType, "/")
			want[fmt.Sprintf("load-%d %s", i%services, name)] += sum
		}
	}
	g.requireSums(t, want)
	profiletest.Account(t, fmt.Sprintf("gateway away for %s, peak of %d MiB", away, peak), pushed, pushed, 0)
}
