// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

// ratedBodies returns profiles of the size that docs/operating.md states, all different, and the sum of
// each of their values.
func ratedBodies(t *testing.T, n int) (bodies []load.Body, sums []map[string]int64) {
	t.Helper()
	for seed := range n {
		built := profiletest.Workloads()[0].Pprof(uint64(seed))
		buf := profiletest.Gzip(t, profiletest.Pprof(t, built))
		body, err := load.NewBody(buf)
		require.NoError(t, err)
		bodies, sums = append(bodies, body), append(sums, profiletest.Sums(built))
	}
	return bodies, sums
}

// sumsInFiles sums the values in all files below a directory by service and sample type. It is
// faster than requireSums, which writes out each sample.
func sumsInFiles(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	sums := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || isIndex(path) {
			return err
		}
		testFile(t, path)
		for _, record := range profiletest.ReadRecords(t, path) {
			pd, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(record)
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			addValues(sums, pd)
		}
		return nil
	})
	require.NoError(t, err)
	return sums
}

func addValues(sums map[string]int64, pd pprofile.Profiles) {
	texts := pd.Dictionary().StringTable()
	for _, rp := range pd.ResourceProfiles().All() {
		service, _ := rp.Resource().Attributes().Get("service.name")
		for _, sp := range rp.ScopeProfiles().All() {
			for _, p := range sp.Profiles().All() {
				name := service.AsString() + " " + texts.At(int(p.SampleType().TypeStrindex())) + "/" + texts.At(int(p.SampleType().UnitStrindex()))
				for _, sample := range p.Samples().All() {
					for _, value := range sample.Values().All() {
						sums[name] += value
					}
				}
			}
		}
	}
}

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
	bodies, sums := ratedBodies(t, 3) // no divisor of services: each service sends all of them
	box, listen := newContainer(t, containerLimit), freeAddress(t)
	s := limitedSidecar(t, box, listen, nil, args...)
	stop := logResident(t, box, s.collector, away/10)
	result, err := load.Run(t.Context(), load.Options{
		URL: s.url + "/v1/pprof", Bodies: bodies, Clients: services, Services: services, Rate: ratedLoad, Duration: away, Timeout: patience,
	})
	stop()
	require.NoError(t, err)
	box.requireAlive(t, s.collector)
	pushed := len(result.Latencies)
	if result.FirstError != nil || result.Accepted() != pushed {
		t.Errorf("%d of %d pushes were accepted: answers %v, first error: %v", result.Accepted(), pushed, result.Statuses, result.FirstError)
	}
	if waiting := s.metric(t, "otelcol_receiver_profiles_file_waiting_bytes"); waiting == 0 {
		t.Error("no file waits")
	} else {
		t.Logf("%d pushes, %d files of %s wait", pushed, s.metric(t, "otelcol_receiver_profiles_file_waiting_files"), mebibytes(int64(waiting)))
	}

	g := gateway(t, listen, nil, "--set=processors.profiles_dedup.window="+window)
	start := time.Now()
	// The last window closes at the shutdown. The next start sends it.
	s.awaitSent(t)
	t.Logf("all files were sent after %s", time.Since(start).Round(time.Second))
	peak := box.requireWithinLimit(t, s.collector)
	s.stop(t)
	s = limitedSidecar(t, box, listen, env{"DATA_DIR": filepath.Dir(s.files)}, args...)
	s.awaitSent(t)
	s.stop(t)
	g.stop(t)
	want := map[string]int64{}
	for i := range pushed {
		for name, sum := range sums[i%len(bodies)] {
			want[fmt.Sprintf("load-%d %s", i%services, name)] += sum
		}
	}
	assert.True(t, maps.Equal(sumsInFiles(t, g.files), want), "want %v", want)
	profiletest.Account(t, fmt.Sprintf("gateway away for %s, peak of %d MiB", away, peak), pushed, pushed, 0)
}

// logResident logs the RSS of a program regularly until the returned function is called.
func logResident(t *testing.T, box *container, c *collector, every time.Duration) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var logging sync.WaitGroup
	logging.Go(func() {
		for start := time.Now(); ; {
			select {
			case <-done:
				return
			case <-time.After(every):
				if box.killed(t) == 0 {
					t.Logf("after %s: %d MiB resident", time.Since(start).Round(time.Second), memory(t, c.command.Process.Pid, "VmRSS:")>>20)
				}
			}
		}
	})
	return func() {
		close(done)
		logging.Wait()
	}
}
