// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCustomBuild builds the distribution of config/custom-build by ocb, in a directory beside a
// clone. It fails to start without the feature gate of the profiles signal. With it, the program
// merges two payloads into one.
func TestCustomBuild(t *testing.T) {
	parallel(t)
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	dir := t.TempDir()
	team := filepath.Join(dir, "acme")
	manifest, err := os.ReadFile(filepath.Join(configs, "custom-build", "builder-config.yaml"))
	if err == nil {
		err = errors.Join(
			os.Mkdir(team, 0o700),
			os.WriteFile(filepath.Join(team, "builder-config.yaml"), manifest, 0o600),
			os.Symlink(root, filepath.Join(dir, "otelcol-profiles")),
		)
	}
	require.NoError(t, err)
	// The pinned version of the builder.
	tool := exec.Command("go", "tool", "-modfile="+filepath.Join(root, "internal", "tools", "go.mod"), "-n", "builder")
	tool.Dir = root
	builder, err := tool.Output()
	require.NoError(t, err, "%v", tool)
	build := exec.Command(strings.TrimSpace(string(builder)), "--config", "builder-config.yaml")
	build.Dir = team
	// The flags of make build, so that packages are compiled once.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS="+os.Getenv("GOFLAGS")+" -trimpath -buildvcs=false")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	path := filepath.Join(team, "otelcol", "otelcol")

	received := make(chan []byte, 10)
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1development/profiles" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		received <- body
	}))
	defer backend.Close()
	config := filepath.Join(configs, "custom-build", "config.yaml")
	listen := freeAddress(t)
	variables := []string{"WINDOW=1h", "BACKEND_ENDPOINT=" + backend.URL, "OTLP_HTTP_LISTEN=" + listen, "OTLP_GRPC_LISTEN=" + freeAddress(t)}
	args := []string{"--config", config, "--set=service.telemetry.metrics.level=none", "--set=exporters.otlp_http.compression=none"}

	without := launch(t, path, variables, args...)
	if err := <-without.exited; err == nil || !strings.Contains(without.logs.String(), "service.profilesSupport") {
		t.Errorf("without the flag it ends with %v\n%s", err, without.logs)
	}

	c := launch(t, path, variables, append(args, gate)...)
	message := func(instance string) []byte { return asOTLP(t, numbered(t, 21), "checkout", instance) }
	c.await(t, "answer", func() bool {
		status, _, err := postOTLP("http://"+listen+otlpPath, message("one"))
		return err == nil && status == http.StatusOK
	})
	if status, said, err := postOTLP("http://"+listen+otlpPath, message("two")); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v\n%s", status, said, err, c.kill())
	}
	c.stop(t)
	require.Len(t, received, 1, "payloads at the backend\n%s", c.logs)
	profiles, violations, err := readProto(<-received)
	if err != nil || len(violations) > 0 {
		t.Fatalf("what the backend has is no OTLP: %v %v", err, violations)
	}
	assert.Equal(t, "map[checkout cpu:42]", fmt.Sprint(totalsOf(profiles)))
	instances := map[string]bool{}
	for _, e := range profiles {
		instances[resourceAttribute(e, "service.instance.id")] = true
	}
	assert.Equal(t, map[string]bool{"one": true, "two": true}, instances)
}
