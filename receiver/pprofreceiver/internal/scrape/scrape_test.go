// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"

	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
)

// The times of the targets are spread, and the same after a restart.
func TestScrapesAreSpread(t *testing.T) {
	const interval = time.Minute
	quarters := make([]int, 4)
	for i := range 1000 {
		at, err := url.Parse(fmt.Sprintf("http://10.0.0.%d:6060/debug/pprof/heap", i))
		require.NoError(t, err)
		moment := offset(at, interval)
		assert.Equal(t, moment, offset(at, interval))
		assert.Less(t, moment, interval)
		quarters[moment*4/interval]++
	}
	for _, n := range quarters {
		assert.InDelta(t, 250, n, 60)
	}
}

func TestDefaultProfilesAndCPUDuration(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		30 * time.Second: 10 * time.Second, 5 * time.Second: 2 * time.Second, time.Second: time.Second,
	} {
		config := DefaultConfig()
		config.HTTP.Timeout = timeout
		assert.Equal(t, want, config.cpuDuration())
		assert.Equal(t, []string{"cpu", "heap", "goroutine", "mutex", "block"}, config.profilesOf(Target{}))
	}
}

// Two targets never have one service.instance.id, unless that is configured.
func TestInstancesOfTargets(t *testing.T) {
	for _, row := range []struct{ targets, want []string }{
		{[]string{"http://a:6060", "http://b:6060/x"}, []string{"a:6060", "b:6060"}},
		{[]string{"http://a:6060/one", "http://A:6060/two/", "http://a"}, []string{"a:6060/one", "a:6060/two", "a"}},
		{[]string{"http://a", "https://a"}, []string{"a:80/debug/pprof", "a:443/debug/pprof"}},
		{[]string{"http://[::1]:6060/x", "http://[::1]:6060"}, []string{"[::1]:6060/x", "[::1]:6060/debug/pprof"}},
	} {
		config := DefaultConfig()
		config.Profiles = []string{ingest.ProfileTypeHeap}
		for _, endpoint := range row.targets {
			config.Targets = append(config.Targets, Target{Endpoint: endpoint})
		}
		require.NoError(t, config.Validate())
		s := New(config, section.Settings{Telemetry: componenttest.NewNopTelemetrySettings()}, nil)
		var got []string
		for _, job := range s.jobs {
			id, _ := job.resource.Get("service.instance.id")
			got = append(got, id.Str())
		}
		assert.Equal(t, row.want, got)
	}
}
