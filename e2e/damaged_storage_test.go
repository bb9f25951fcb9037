// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// TestDamagedStorage_E14_R17 truncates the files of the queue and of the file checkpoints. The next
// process names them, and both pipelines work: the file is read again, and new pushes are written.
func TestDamagedStorage_E14_R17(t *testing.T) {
	parallel(t)
	program(t)
	pprof := payloads(t)[0].data
	files, inbox, storage := filepath.Join(t.TempDir(), "profiles"), t.TempDir(), filepath.Join(t.TempDir(), "storage")
	begin := func() *collector {
		address := freeAddress(t)
		return run(t, address, files, fmt.Sprintf(`
extensions:
  file_storage:
    directory: %s
    create_directory: true
receivers:
  pprof:
    server:
      endpoint: %s
  pprof/files:
    file:
      include: [%s/*.pb.gz]
      poll_interval: 50ms
      storage: file_storage
    resource_attributes: { service.name: from-file }
exporters:
  profiles_file:
    directory: %s
    group_by: [service.name]
    rotation: { max_age: 100ms }
    sending_queue:
      storage: file_storage
service:
  extensions: [file_storage]
  telemetry:
    metrics:
      level: none
  pipelines:
    profiles:
      receivers: [pprof, pprof/files]
      exporters: [profiles_file]
`, storage, address, inbox, files))
	}
	c := begin()
	if err := os.WriteFile(filepath.Join(inbox, "a.pb.gz"), pprof, 0o600); err != nil {
		t.Fatal(err)
	}
	c.push(t, "before", pprof)
	c.await(t, "files", func() bool { return allThere(t, files, []string{"before", "from-file"}) })
	c.stop(t)

	var damaged []string
	entries, err := os.ReadDir(storage)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		path := filepath.Join(storage, entry.Name())
		if err := os.Truncate(path, 5000); err != nil {
			t.Fatal(err)
		}
		damaged = append(damaged, path)
	}
	if len(damaged) != 2 {
		t.Fatalf("there are %v, want the files of a queue and of checkpoints", damaged)
	}
	c = begin()
	c.push(t, "after", pprof)
	c.await(t, "files", func() bool {
		return allThere(t, files, []string{"after"}) && len(closedFiles(t, files, "from-file")) == 2 // it is read again
	})
	c.stop(t)
	if records := readAll(t, filepath.Join(files, "from-file")); len(records) != 2 {
		t.Errorf("%d records of the file, want 2", len(records))
	}
	for _, path := range damaged {
		log := c.logs.String()
		if !strings.Contains(log, "Moved damaged storage file aside") || !strings.Contains(log, path) {
			t.Errorf("the log does not name %s:\n%s", path, log)
		}
		if moved, err := filepath.Glob(path + ".damaged-*"); err != nil || len(moved) != 1 {
			t.Errorf("%s was moved to %v, %v", path, moved, err)
		}
	}
	readable := 0
	for _, service := range []string{"before", "after"} {
		readable += len(readAll(t, filepath.Join(files, service)))
	}
	profiletest.Account(t, "2 truncated files of file_storage", 2, readable, 0)
}
