// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestPersistentQueueSurvivesKill_E14 pushes into a persistent queue while the backend is away, and kills the program. The
// next process sends all profiles once.
func TestPersistentQueueSurvivesKill_E14(t *testing.T) {
	parallel(t)
	rounds, away := profiletest.Rounds(t, 2, 20), time.Duration(0)
	if full, _ := profiletest.Soak(t); full {
		away = time.Minute
	}
	pprof := payloads(t)[0].data
	files, storage, backend := filepath.Join(t.TempDir(), "profiles"), filepath.Join(t.TempDir(), "queue"), freeAddress(t)
	begin := func() *collector {
		address := freeAddress(t)
		return run(t, address, "", fmt.Sprintf(`
extensions: {file_storage: {directory: %s, create_directory: true, fsync: true}}
receivers: {pprof: {server: {endpoint: %s}}}
exporters:
  otlp_grpc:
    endpoint: %s
    tls: {insecure: true}
    retry_on_failure: {initial_interval: 50ms, max_interval: 200ms, max_elapsed_time: 0s}
    sending_queue: {storage: file_storage}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [pprof], exporters: [otlp_grpc]}}
`, storage, address, backend))
	}
	var services []string
	c := begin()
	for round := range rounds {
		for i := range 5 {
			service := fmt.Sprintf("service-%d-%d", round, i)
			c.push(t, service, pprof)
			services = append(services, service)
		}
		if round == 0 {
			time.Sleep(away)
		}
		c.kill()
		c = begin()
		probe := freeAddress(t)
		b := run(t, probe, files, fmt.Sprintf(`
receivers: {pprof: {server: {endpoint: %s}}, otlp: {protocols: {grpc: {endpoint: %s}}}}
exporters: {profiles_file: {directory: %s, group_by: [service.name], rotation: {max_age: 100ms}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [pprof, otlp], exporters: [profiles_file]}}
`, probe, backend, files))
		b.await(t, "files of all services", func() bool {
			closed := slices.DeleteFunc(filesIn(t, files), func(path string) bool { return !fileName.MatchString(filepath.Base(path)) })
			return len(closed) == len(services)
		})
		b.stop(t)
	}
	c.stop(t)
	readable := 0
	for _, service := range services {
		got := len(readAll(t, filepath.Join(files, "service.name="+service)))
		assert.Equal(t, 1, got, "records of %s", service)
		readable += got
	}
	profiletest.Account(t, fmt.Sprintf("%d SIGKILL while the backend is away", rounds), len(services), readable, 0)
}
