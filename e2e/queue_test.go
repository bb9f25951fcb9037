// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestPersistentQueueSurvivesKill_E14 makes the output directory unusable, pushes into a persistent
// queue, and kills the program. The next process writes all profiles once.
func TestPersistentQueueSurvivesKill_E14(t *testing.T) {
	parallel(t)
	rounds, away := profiletest.Rounds(t, 2, 20), time.Duration(0)
	if full, _ := profiletest.Soak(t); full {
		away = time.Minute
	}
	pprof := payloads(t)[0].data
	files := filepath.Join(t.TempDir(), "profiles")
	storage := filepath.Join(t.TempDir(), "queue")
	begin := func() *collector {
		address := freeAddress(t)
		return run(t, address, files, fmt.Sprintf(`
extensions: {file_storage: {directory: %s, create_directory: true, fsync: true}}
receivers: {pprof: {server: {endpoint: %s}}}
exporters:
  profiles_file: {directory: %s, group_by: [service.name], rotation: {max_age: 100ms}, sending_queue: {storage: file_storage}}
service:
  extensions: [file_storage]
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [pprof], exporters: [profiles_file]}}
`, storage, address, files))
	}
	var services []string
	c := begin()
	for round := range rounds {
		// A file in place of the directory.
		require.NoError(t, os.Rename(files, files+"-away"))
		require.NoError(t, os.WriteFile(files, nil, 0o600))
		for i := range 5 {
			service := fmt.Sprintf("service-%d-%d", round, i)
			c.push(t, service, pprof)
			services = append(services, service)
		}
		if round == 0 {
			time.Sleep(away)
		}
		c.kill()
		require.NoError(t, os.Remove(files))
		require.NoError(t, os.Rename(files+"-away", files))
		c = begin()
		c.await(t, "files of all services", func() bool {
			closed, err := filepath.Glob(filepath.Join(files, "*", "profiles-*.otlp.pb.zst"))
			require.NoError(t, err)
			return len(closed) == len(services)
		})
	}
	c.stop(t)
	readable := 0
	for _, service := range services {
		got := len(readAll(t, filepath.Join(files, service)))
		assert.Equal(t, 1, got, "records of %s", service)
		readable += got
	}
	profiletest.Account(t, fmt.Sprintf("%d SIGKILL with a directory that cannot be written to", rounds), len(services), readable, 0)
}
