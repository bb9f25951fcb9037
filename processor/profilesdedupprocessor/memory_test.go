// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
)

const envStrings = "PROFILES_DEDUP_TEST_STRINGS"

// functions is a payload of n functions whose names no other seed has.
func functions(seed, n int) pprofile.Profiles {
	pd := payloadtest.ManyStacks(n, 0)
	d := pd.Dictionary()
	d.FunctionTable().AppendEmpty()
	for i := range n {
		d.StringTable().Append(fmt.Sprintf("github.com/acme/checkout/internal/order.function%d_%d", seed, i))
		d.FunctionTable().AppendEmpty().SetNameStrindex(int32(d.StringTable().Len() - 1))
		d.LocationTable().At(i + 1).SetAddress(0)
		d.LocationTable().At(i + 1).Lines().AppendEmpty().SetFunctionIndex(int32(i + 1))
	}
	return pd
}

// TestManyStringsProcess is the process that the next test measures.
func TestManyStringsProcess(t *testing.T) {
	total, err := strconv.Atoi(os.Getenv(envStrings))
	if err != nil {
		t.Skip("another test runs it, in a process of its own")
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Window, cfg.MemoryLimit, cfg.ShutdownTimeout = time.Hour, 64*config.MiB, time.Hour
	payloads, samples := 0, 0 // each sample has the value 1
	p, err := newDedupProcessor(nopSettings(), cfg, nextFunc(func(_ context.Context, pd pprofile.Profiles) error {
		payloads++
		samples += pd.SampleCount()
		return nil
	}))
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	const each = 2000
	for seed := range total / each {
		pd := functions(seed, each)
		for p.ConsumeProfiles(t.Context(), pd) != nil {
			time.Sleep(time.Millisecond) // and retry
		}
	}
	require.NoError(t, p.Shutdown(t.Context()))
	require.Equal(t, total/each*each, samples, "no drop")
	require.Greater(t, payloads, 1, "early flushes")
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	fmt.Printf("%s\npayloads %d\n", regexp.MustCompile(`VmHWM:\s+\d+ kB`).Find(status), payloads)
}

// With a limit of 64 MiB, any number of distinct strings flushes windows early and drops none, and
// the process takes less than 192 MiB.
func TestDistinctStringsStayWithinMemory_P5(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("there is no /proc to read the memory of a process from")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestManyStringsProcess$", "-test.timeout=20m")
	total, memory := profiletest.Rounds(t, 400_000, 10_000_000), "GOMEMLIMIT=128MiB"
	if profiletest.RaceEnabled { // it takes more memory, and a limit makes it slow
		total, memory = 200_000, "GOMEMLIMIT=off"
	}
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envStrings, total), memory)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(out)
	require.NotNil(t, found, string(out))
	peak, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	profiletest.Injected(t, fmt.Sprintf("%d distinct strings, peak RSS %d MiB", total, peak>>10))
	if !profiletest.RaceEnabled {
		require.Less(t, peak, 192<<10)
	}
}
