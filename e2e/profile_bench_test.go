// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/load"
)

// BenchmarkProfile writes the CPU profile that the program takes of itself under full load to the file in
// OTELCOL_PROFILES_PROFILE. It is for make profile.
func BenchmarkProfile(b *testing.B) {
	out := os.Getenv("OTELCOL_PROFILES_PROFILE")
	if out == "" {
		b.Skip("OTELCOL_PROFILES_PROFILE is not set (make profile)")
	}
	const profiled = 20 * time.Second
	m := startMeasured(b, 1, "--set=receivers.pprof.self={collection_interval: 1h, cpu_duration: "+profiled.String()+", profiles: [cpu]}")
	result, err := load.Run(b.Context(), load.Options{
		URL: m.url + "/v1/pprof", Bodies: []load.Body{benchBody(b)},
		Clients: benchServices, Services: benchServices, Duration: profiled + time.Second, Timeout: time.Minute,
	})
	if err != nil || result.FirstError != nil {
		b.Fatal(err, result.FirstError, m.kill())
	}
	m.stop(b)
	otelprof := exec.Command(filepath.Join("..", "bin", "otelprof"), "convert", m.files, "--service=otelcol-profiles", "--type=cpu", "--format=pprof", "--output="+out)
	if output, err := otelprof.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	b.ReportMetric(0, "ns/op")
}
