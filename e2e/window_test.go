// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

// TestFullWindowIsSent_M2 fills windows with samples that take little of a window and much as OTLP. The receiver of
// files must have memory for them.
func TestFullWindowIsSent_M2(t *testing.T) {
	parallel(t)
	const services = 400
	built := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1, DurationNanos: 1,
	}
	for i := range uint64(1000) {
		location := &profile.Location{ID: i + 1, Address: i + 1}
		built.Location = append(built.Location, location)
		built.Sample = append(built.Sample, &profile.Sample{Location: []*profile.Location{location}, Value: []int64{1, 1}})
	}
	body, err := load.NewBody(profiletest.Gzip(t, profiletest.Pprof(t, built)))
	require.NoError(t, err)

	box, listen := newContainer(t, containerLimit), freeAddress(t)
	s := limitedSidecar(t, box, listen, nil, "--set=processors.profiles_dedup.window=60s")
	result, err := load.Run(t.Context(), load.Options{
		URL: s.url + "/v1/pprof", Bodies: []load.Body{body}, Clients: 1, Services: services, Rate: 100, Duration: services * 10 * time.Millisecond, Timeout: patience,
	})
	require.NoError(t, err)
	require.Equal(t, map[int]int{204: services}, result.Statuses)
	g := gateway(t, listen, nil)
	s.stop(t)
	s = limitedSidecar(t, box, listen, env{"DATA_DIR": filepath.Dir(s.files)})
	s.awaitSent(t)
	s.stop(t)
	g.stop(t)
	want := map[string]int64{}
	for i := range services {
		want[fmt.Sprintf("load-%d samples", i)], want[fmt.Sprintf("load-%d cpu", i)] = 1000, 1000
	}
	g.requireSums(t, want)
}

// TestReceiversOfFilesHaveMemoryForWindows_M2 checks each configuration whose windows are read again from files.
func TestReceiversOfFilesHaveMemoryForWindows_M2(t *testing.T) {
	for _, tt := range []struct{ dedup, config string }{
		{"profiles_dedup", "sidecar.yaml"}, {"profiles_dedup/scrape", "agent.yaml"}, {"profiles_dedup", "gateway-forward.yaml"},
	} {
		t.Run(tt.config, func(t *testing.T) {
			config, err := confmaptest.LoadConf(filepath.Join(configs, tt.config))
			require.NoError(t, err)
			percent := func(key string) float64 {
				number, err := strconv.ParseFloat(strings.TrimSuffix(fmt.Sprint(config.Get(key)), "%"), 64)
				require.NoError(t, err)
				return number
			}
			window := percent("processors::"+tt.dedup+"::memory_limit") * 7 / 8 / 3
			record := percent("receivers::profiles_file::max_in_flight") * 3 / 4
			assert.GreaterOrEqual(t, record, 3.5*window, "a record takes up to 3.5 times as much as the window")
		})
	}
}
