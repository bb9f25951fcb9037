// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestPprofFiles reads pprof output by google/pprof, which finds the pushed sums, by
// `go tool pprof -top` and by `gzip -t`.
func TestPprofFiles(t *testing.T) {
	parallel(t)
	c := start(t, "0s", "    format: pprof\n    group_by: [service.name]")
	pushed := payloads(t)
	for _, p := range pushed {
		c.push(t, p.service, p.data)
	}
	c.stop(t)
	for _, p := range pushed {
		t.Run(p.service, func(t *testing.T) {
			in, err := profile.ParseData(p.data)
			if err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(c.files, strings.ReplaceAll(p.service, "/", "%2F"), "*.pprof.pb.gz"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no file of %s in %s: %v", p.service, c.files, err)
			}
			got := map[string]int64{}
			for _, path := range files {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				out, err := profile.ParseData(data)
				if err != nil {
					t.Fatal(err)
				}
				addSums(got, out)
				requireTool(t, "gzip", "-t", path)
				top := requireTool(t, "go", "tool", "pprof", "-top", "-nodecount=3", path)
				if !bytes.Contains(top, []byte("flat%")) {
					t.Errorf("go tool pprof says %s", top)
				}
			}
			want := map[string]int64{}
			addSums(want, in)
			for key, sum := range want {
				if got[key] != sum {
					t.Errorf("%s sums up to %d, want %d", key, got[key], sum)
				}
			}
		})
	}
}

// TestPprofFilesOfOneTypeMerge: one directory has profiles of several types, and `go tool pprof` opens
// all files of each, as the documentation says.
func TestPprofFilesOfOneTypeMerge(t *testing.T) {
	parallel(t)
	c := start(t, "0s", "    format: pprof")
	pushed := payloads(t)
	for _, profileType := range []string{"", "", "heap", "cpu"} { // of services in several languages
		for _, p := range pushed {
			query := url.Values{"service.name": {p.service}}
			if profileType != "" {
				query.Set("profile_type", profileType)
			}
			if got := c.do(t, http.MethodPost, query, p.data); got.status != http.StatusNoContent {
				t.Fatalf("pushing %s: %d: %s, want 204", p.service, got.status, got.body)
			}
		}
	}
	c.stop(t)
	files, err := filepath.Glob(filepath.Join(c.files, "*.pprof.pb.gz"))
	if err != nil {
		t.Fatal(err)
	}
	types := map[string][]string{}
	for _, path := range files {
		profileType, _, _ := strings.Cut(filepath.Base(path), "-20")
		types[profileType] = append(types[profileType], path)
	}
	if len(types) < 2 {
		t.Fatalf("files of %d types, want several: %q", len(types), files)
	}
	for profileType, files := range types {
		top := requireTool(t, "go", append([]string{"tool", "pprof", "-top", "-nodecount=3"}, files...)...)
		if !bytes.Contains(top, []byte("flat%")) {
			t.Errorf("%s: go tool pprof says %s", profileType, top)
		}
	}
}

// addSums adds the values of each sample type.
func addSums(sums map[string]int64, p *profile.Profile) {
	for i, sampleType := range p.SampleType {
		for _, sample := range p.Sample {
			sums[sampleType.Type+" "+sampleType.Unit] += sample.Value[i]
		}
	}
}

func requireTool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("not run: %s is not installed", name)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}
