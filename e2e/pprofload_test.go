// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/pprof/profile"
)

// TestPprofload checks that all profiles that the load generator reports as accepted are in the
// files.
func TestPprofload(t *testing.T) {
	parallel(t)
	c := start(t, "200ms", "    compression: none")
	dir := t.TempDir()
	generator := filepath.Join(dir, "pprofload")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", generator, "./cmd/pprofload")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "cpu.pb.gz")
	data := compressed(t, pprofBytes(t, &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Value: []int64{7}}},
	}))
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(generator, "-url", c.url+"/v1/pprof", "-rate", "200", "-duration", "500ms", "-services", "3", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m := regexp.MustCompile(`(?m)^accepted +(\d+) profiles`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("it does not say what was accepted:\n%s", out)
	}
	accepted, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	c.stop(t)
	sum := int64(0)
	for i := range 3 {
		sum += c.totals(t)["load-"+strconv.Itoa(i)+" cpu"]
	}
	if accepted != 100 || sum != 7*int64(accepted) {
		t.Errorf("%d profiles of 7 were accepted, and %d is in the files; want 100 and 700\n%s", accepted, sum, out)
	}

	out, err = exec.Command(generator, "-url", c.url+"/v1/pprof", "-duration", "100ms", file).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("were not accepted")) {
		t.Errorf("nobody listens, and it ended with %v\n%s", err, out)
	}
}
