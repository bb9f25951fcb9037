// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
)

// TestObjectStorage: the Collector uploads its files to a real server of S3's protocol, over an outage of the server and a kill of the
// Collector; otelprof and the page have the same from the bucket as from the directory.
func TestObjectStorage(t *testing.T) {
	server := s3test.NewMinIO(t)
	server.Start()
	listen, view, files := freeAddress(t), freeAddress(t), filepath.Join(t.TempDir(), "profiles")
	bucket := s3test.Path(server.Endpoint, "prod/host-1")
	config := fmt.Sprintf(`
receivers: {pprof: {server: {endpoint: %s}}}
processors: {profiles_dedup: {window: 100ms}}
exporters:
  profiles_file:
    directory: %s
    group_by: [service.name]
    rotation: {max_records: 1}
    object_storage: {endpoint: '%s', bucket: %s, prefix: prod/host-1}
extensions: {profiles_view: {endpoint: %s, directory: '%s'}}
service:
  extensions: [profiles_view]
  telemetry: {metrics: {level: none}, logs: {level: debug}}
  pipelines: {profiles: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}}
`, listen, files, server.Endpoint, s3test.Bucket, view, bucket)

	body := profiletest.Workloads()[0]
	push := func(c *collector, seed uint64) {
		for _, service := range []string{"cart", "checkout"} {
			c.push(t, service, profiletest.Pprof(t, body.Pprof(seed)))
		}
	}
	uploaded := func() (n int) {
		for o := range server.Client.ListObjects(t.Context(), s3test.Bucket, minio.ListObjectsOptions{Prefix: "prod/host-1/", Recursive: true}) {
			if o.Err == nil && strings.HasSuffix(o.Key, ".zst") {
				n++
			}
		}
		return n
	}
	closed := func() int {
		found, err := filepath.Glob(filepath.Join(files, "*", "*.zst"))
		require.NoError(t, err)
		return len(found)
	}
	c := run(t, listen, files, config)
	push(c, 1)
	c.await(t, "upload", func() bool { return uploaded() >= 2 && uploaded() == closed() })

	server.Stop()
	push(c, 2)
	c.await(t, "failure", func() bool { return strings.Contains(c.logs.String(), "Upload failed; will retry") })
	before := closed()
	logs := c.kill()
	server.Start()
	c = run(t, listen, files, config)
	push(c, 3)
	c.await(t, "upload of all", func() bool { return closed() > before && uploaded() == closed() })

	for _, command := range [][]string{{"ls", "--json"}, {"cat"}, {"convert", "--format", "otlp", "--service", "cart"}} {
		_, want, _, _ := otelprof(t, append(command, files)...)
		code, got, notes, _ := otelprof(t, append(command, bucket)...)
		require.Zero(t, code, notes)
		require.NotEmpty(t, want)
		assert.Equal(t, want, got, "%s", command)
	}
	response, err := http.Get("http://" + view + "/api/services?from=2001-01-01T00:00:00Z")
	require.NoError(t, err)
	page, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Contains(t, string(page), `"service":"checkout"`)
	c.stop(t)
	assert.NotContains(t, logs+c.logs.String(), s3test.Secret)
	assert.NotContains(t, logs+c.logs.String(), "test-access-key")
}
