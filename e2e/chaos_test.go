// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestAccountingUnderCombinedFaults_D4 combines kills, a full disk, slow targets and malformed
// input while clients push with acknowledge: on_flush and sync: record.
func TestAccountingUnderCombinedFaults_D4(t *testing.T) {
	parallel(t)
	seeds, steps := profiletest.Rounds(t, 1, 10), 30
	if full, _ := profiletest.Soak(t); full {
		steps = 300
	}
	for range seeds {
		seed := profiletest.Seed(t)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { chaos(t, seed, steps) })
	}
}

func chaos(t *testing.T, seed uint64, steps int) {
	random := rand.New(rand.NewPCG(seed, 0))
	address := freeAddress(t)
	disk, mounted := smallDisk(t)
	if !mounted {
		t.Run("full disk", func(t *testing.T) { t.Skip("no tmpfs can be mounted here, it needs root") })
	}
	files := filepath.Join(disk, "profiles")
	config := fmt.Sprintf(`
receivers:
  pprof:
    max_in_flight: 32MiB
    server: {endpoint: %[1]s, max_decompressed_size: 4MiB}
    remote:
      collection_interval: 500ms
      timeout: 400ms
      profiles: [heap]
      targets:
        - {endpoint: %[2]s/good, resource_attributes: {service.name: good}}
        - {endpoint: %[2]s/hangs, resource_attributes: {service.name: hangs}}
        - {endpoint: %[2]s/drips, resource_attributes: {service.name: drips}}
processors:
  profiles_dedup: {window: 100ms, acknowledge: on_flush}
exporters:
  profiles_file:
    directory: %[3]s
    sync: record
    rotation: {max_age: 500ms}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}
`, address, targets(t), files)
	c := run(t, address, files, config)

	var l ledger
	ctx, cancel := context.WithCancel(t.Context())
	wait := l.clients(ctx, t, 8, c.url, 2*time.Millisecond)
	ways, bad, filler := waysToPush(t), badInput(t, random), filepath.Join(disk, "filler")
	kills, fills, rejected := 0, 0, 0
	for range steps {
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond)
		switch random.IntN(6) {
		case 0:
			kills++
			c.kill()
			c = run(t, address, files, config)
		case 1:
			if mounted {
				fills++
				fill(t, filler)
				time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
				if err := os.Remove(filler); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
		default:
			way := ways[random.IntN(len(ways))]
			if status := way.send(t, c.url, bad[random.IntN(len(bad))]); status < 400 || status >= 500 {
				t.Errorf("bad input by %s was answered with %d", way.path, status)
			}
			rejected++
		}
	}
	cancel()
	wait()
	c.stop(t)
	l.verify(t, files, fmt.Sprintf("%d SIGKILL, %d times a full disk, %d bad pushes, 2 bad targets", kills, fills, rejected), 0)
}

// smallDisk returns a tmpfs of 32 MiB, if one can be mounted.
func smallDisk(t *testing.T) (dir string, mounted bool) {
	t.Helper()
	dir = t.TempDir()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return dir, false
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Logf("mount: %v: %s", err, out)
		return dir, false
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir, true
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return
		}
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 16
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// badInput returns bodies that every endpoint rejects.
func badInput(t *testing.T, random *rand.Rand) [][]byte {
	t.Helper()
	good := profiletest.Pprof(t, &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Value: []int64{1}}},
	})
	noise := make([]byte, 1000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	return append(bombs(t),
		noise,
		append([]byte{0x1f, 0x8b}, noise...),
		good[:len(good)-1],
		profiletest.Gzip(t, good)[:len(good)],
		append(good[:len(good):len(good)], 0x12, 0x05, 0x0a, 0x01, 0x09, 0x12, 0x00), // a location that is in no table
	)
}

// targets serves a heap profile at /good, nothing at /hangs, and an endless body at /drips.
func targets(t *testing.T) (url string) {
	t.Helper()
	data := profiletest.Pprof(t, profiletest.HeapPprof(1, 1, 1, 1))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/good/"):
			_, _ = w.Write(data)
		case strings.HasPrefix(r.URL.Path, "/hangs/"):
			<-r.Context().Done()
		}
		for r.Context().Err() == nil && strings.HasPrefix(r.URL.Path, "/drips/") {
			if _, err := w.Write([]byte{0x1f}); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush() // the next write tells
			time.Sleep(10 * time.Millisecond)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}
