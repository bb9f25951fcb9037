// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDefaultConfig runs the program without --config, on other ports. It responds at each address
// of the default configuration, and its metrics have their documented names.
func TestDefaultConfig(t *testing.T) {
	parallel(t)
	path := program(t)
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join("..", "cmd", "otelcol-profiles", "default-config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{"localhost:8888": freeAddress(t)}
	for _, match := range regexp.MustCompile(`(?m)^ *endpoint: (.*)$`).FindAllStringSubmatch(string(config), -1) {
		addresses[match[1]] = freeAddress(t)
	}
	args := []string{
		"--set=receivers.pprof.server.endpoint=" + addresses["localhost:4040"],
		"--set=extensions.health_check.endpoint=" + addresses["localhost:13133"],
		"--set=extensions.zpages.endpoint=" + addresses["localhost:55679"],
		metricsAt(t, addresses["localhost:8888"]),
	}
	if len(addresses) != len(args) {
		t.Fatalf("the default config listens at %v, which this test does not know", addresses)
	}

	command := exec.Command(path, args...)
	command.Dir = dir
	c := begin(t, command)
	c.url = "http://" + addresses["localhost:4040"]
	c.awaitReady(t)

	for _, page := range []struct{ address, path, says string }{
		{"localhost:13133", "/", "Server available"},
		{"localhost:55679", "/debug/servicez", "otelcol-profiles"},
		{"localhost:55679", "/debug/pipelinez", "profiles_dedup"},
		{"localhost:55679", "/debug/extensionz", "zpages"},
		{"localhost:55679", "/debug/featurez", "service.profilesSupport"},
		{"localhost:8888", "/metrics", "otelcol_process_uptime"},
	} {
		status, body := get(t, "http://"+addresses[page.address]+page.path)
		if status != http.StatusOK || !strings.Contains(body, page.says) {
			t.Errorf("%s%s answers %d, want 200 and %q in it:\n%.500s", page.address, page.path, status, page.says, body)
		}
	}
	c.stop(t)
	if entries, err := os.ReadDir(filepath.Join(dir, "profiles")); err == nil {
		for _, entry := range entries {
			if strings.HasSuffix(entry.Name(), ".partial") {
				t.Errorf("%s is left", entry.Name())
			}
		}
	}
}

// metricsAt returns the option that serves metrics at an address under their default names.
func metricsAt(t *testing.T, address string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return "--set=service.telemetry.metrics.readers=[{pull: {exporter: {prometheus: {host: '" + host + "', port: " + port +
		", without_scope_info: true, without_type_suffix: true, without_units: true}}}}]"
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(text)
}
