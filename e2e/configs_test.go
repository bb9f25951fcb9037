// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// configs is the directory of the example configurations.
var configs = filepath.Join("..", "config")

// env are variables of the environment.
type env map[string]string

// member is a collector that runs one of the configurations in config/.
type member struct {
	*collector
	metrics string                        // URL of its own metrics
	read    map[string][][]expand.Profile // the records of finished files, by path
}

// runConfig starts a program with a configuration, variables and arguments, and returns when it
// is healthy. HEALTH_LISTEN and the port of its metrics are free ports. It writes below DATA_DIR,
// and its url is PPROF_LISTEN.
func runConfig(t *testing.T, path, config string, variables env, args ...string) *member {
	t.Helper()
	health, metrics := freeAddress(t), freeAddress(t)
	_, port, err := net.SplitHostPort(metrics)
	require.NoError(t, err)
	environment := []string{"HEALTH_LISTEN=" + health, "METRICS_PORT=" + port, "VIEW_LISTEN=" + freeAddress(t)}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		environment = append(environment, name+"="+variables[name])
	}
	args = slices.Clip(args)
	for _, config := range []string{bases[config], config} {
		if config != "" {
			args = append(args, "--config", filepath.Join(configs, filepath.FromSlash(config)))
		}
	}
	m := &member{
		collector: launch(t, path, environment, args...),
		metrics:   "http://" + metrics + "/metrics",
		read:      map[string][][]expand.Profile{},
	}
	m.url = "http://" + variables["PPROF_LISTEN"]
	m.files = filepath.Join(variables["DATA_DIR"], "files")
	m.await(t, "healthy "+config, func() bool {
		select {
		case exit := <-m.exited:
			t.Fatalf("%s ended at once: %v\n%s", config, exit, m.logs)
		default:
		}
		got, err := ask(http.MethodGet, "http://"+health, nil)
		return err == nil && got.status == http.StatusOK
	})
	return m
}

// metric sums the series of a metric whose line contains all of labels.
func (m *member) metric(t *testing.T, name string, labels ...string) int {
	t.Helper()
	sum := 0.0
	for line := range strings.Lines(get(t, m.metrics).body) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if rest, found := strings.CutPrefix(series, name); !ok || !found || rest != "" && rest[0] != '{' {
			continue
		}
		if slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(series, label) }) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err, "%s", line)
		sum += number
	}
	return int(sum)
}

// written returns the contents of all closed files, in groups or not. The collector may be
// writing.
func (m *member) written(t *testing.T) []expand.Profile {
	t.Helper()
	err := filepath.WalkDir(m.files, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing yet, or it was renamed just now
		}
		if err != nil || entry.IsDir() || !fileName.MatchString(entry.Name()) {
			return err
		}
		if _, have := m.read[path]; !have {
			m.read[path] = readFile(t, path)
		}
		return nil
	})
	require.NoError(t, err)
	var all []expand.Profile
	for _, path := range slices.Sorted(maps.Keys(m.read)) {
		all = append(all, slices.Concat(m.read[path]...)...)
	}
	return all
}

// totalsOf sums all values by service and sample type.
func totalsOf(profiles []expand.Profile) map[string]int64 {
	out := map[string]int64{}
	for _, e := range profiles {
		for _, sample := range e.Samples {
			if sample.Sum.Sign() != 0 {
				out[resourceAttribute(e, "service.name")+" "+e.Type] += sample.Sum.Int64()
			}
		}
	}
	return out
}

// awaitSums waits until the files hold exactly these sums.
func (m *member) awaitSums(t *testing.T, want map[string]int64) {
	t.Helper()
	var got map[string]int64
	defer func() {
		if t.Failed() {
			t.Logf("the files hold %v, want %v", got, want)
		}
	}()
	m.await(t, "files with all sums", func() bool {
		got = totalsOf(m.written(t))
		return maps.Equal(got, want)
	})
}

// requireSums checks the sums after the collector has stopped, and that no file is .partial.
func (m *member) requireSums(t *testing.T, want map[string]int64) {
	t.Helper()
	got := totalsOf(m.written(t))
	assert.True(t, maps.Equal(got, want), "sums in the files: %v, want %v", got, want)
	partial := 0
	_ = filepath.WalkDir(m.files, func(path string, _ fs.DirEntry, _ error) error {
		if strings.HasSuffix(path, ".partial") {
			partial++
		}
		return nil
	})
	assert.Zero(t, partial, "files that are not closed")
}

// retries shortens the intervals of retries.
func retries(of string) []string {
	return []string{"--set=" + of + ".retry_on_failure.initial_interval=100ms", "--set=" + of + ".retry_on_failure.max_interval=500ms"}
}

// quick shortens intervals that are seconds or minutes by default.
var quick = map[string][]string{
	"sidecar.yaml": append(retries("exporters.otlp_grpc"),
		"--set=processors.profiles_dedup.window=200ms",
		"--set=receivers.profiles_file.poll_interval=50ms",
	),
	"agent.yaml": append(retries("exporters.otlp_grpc"),
		"--set=receivers.pprof/scrape.remote.collection_interval=1500ms",
		"--set=receivers.pprof/scrape.remote.cpu_duration=1s",
		"--set=receivers.profiles_file/files.poll_interval=50ms",
		"--set=processors.profiles_dedup/scrape.window=200ms",
		"--set=receivers.profiles_file.poll_interval=50ms",
	),
	"gateway.yaml": append(retries("processors.profiles_dedup"), "--set=exporters.profiles_file.rotation.max_age=200ms"),
	"gateway-forward.yaml": append(retries("exporters.otlp_grpc"),
		"--set=receivers.profiles_file.poll_interval=50ms",
		"--set=exporters.profiles_file.rotation.max_age=200ms",
	),
	"kafka/gateway-to-kafka.yaml": retries("processors.profiles_dedup"),
	"replay.yaml":                 retries("exporters.otlp_grpc"),
	"auth.yaml":                   {"--set=exporters.profiles_file.rotation.max_age=200ms"},
	"scrape.yaml":                 {},
	"files.yaml":                  {},
	"splunk.yaml":                 {"--set=exporters.profiles_file.rotation.max_age=200ms"},
	"kafka/from-kafka.yaml": append(retries("processors.profiles_dedup"),
		"--set=exporters.profiles_file.rotation.max_age=200ms",
		"--set=receivers.kafka.error_backoff.max_interval=500ms",
	),
}

// bases are the configurations that others are used on top of.
var bases = map[string]string{"gateway-forward.yaml": "gateway.yaml"}

// sidecar starts the sidecar of a service with quick settings and its data in dir.
func sidecar(t *testing.T, dir, service, instance, gateway string, args ...string) *member {
	t.Helper()
	return runConfig(t, program(t), "sidecar.yaml", env{
		"DATA_DIR": dir, "PPROF_LISTEN": freeAddress(t), "GATEWAY_ENDPOINT": gateway,
		"SERVICE_NAME": service, "HOSTNAME": instance,
	}, slices.Concat(quick["sidecar.yaml"], args)...)
}

// gateway starts a gateway with quick settings at address.
func gateway(t *testing.T, address string, variables env, args ...string) *member {
	t.Helper()
	all := env{"DATA_DIR": t.TempDir(), "OTLP_GRPC_LISTEN": address, "OTLP_HTTP_LISTEN": freeAddress(t), "WINDOW": "300ms"}
	maps.Copy(all, variables)
	return runConfig(t, program(t), "gateway.yaml", all, slices.Concat(quick["gateway.yaml"], args)...)
}

// TestConfigsAreValid validates each configuration, unchanged and with each variable that selects
// a part of it.
func TestConfigsAreValid(t *testing.T) {
	parallel(t)
	found, err := fs.Glob(os.DirFS(configs), "*.yaml")
	require.NoError(t, err)
	more, err := fs.Glob(os.DirFS(configs), "kafka/*-kafka.yaml")
	require.NoError(t, err)
	variables := map[string][]string{
		"sidecar.yaml":                {"GATEWAY_INSECURE=false", "HOSTNAME=1234"},
		"agent.yaml":                  {"GATEWAY_INSECURE=false"},
		"gateway.yaml":                {"EXPORTER=otlp_grpc", "ACKNOWLEDGE=on_receive"},
		"gateway-forward.yaml":        {"RETENTION_SIZE=1GiB"},
		"kafka/from-kafka.yaml":       {"EXPORTER=otlp_grpc", "WINDOW=0s", "KAFKA_BROKERS=kafka-1:9092,kafka-2:9092"},
		"kafka/gateway-to-kafka.yaml": {"KAFKA_BROKERS=kafka-1:9092,kafka-2:9092"},
	}
	for _, config := range append(found, more...) {
		assert.NotNil(t, quick[config], "no test starts %s", config)
		for _, variable := range append(variables[config], "") {
			t.Run(config+" "+variable, func(t *testing.T) {
				parallel(t)
				path, args := program(t), []string{"validate"}
				if strings.HasPrefix(config, "kafka/") {
					path = kafkaProgram(t)
				}
				if base := bases[config]; base != "" {
					args = append(args, "--config", filepath.Join(configs, base))
				}
				command := exec.Command(path, append(args, "--config", filepath.Join(configs, config))...)
				command.Env = append(os.Environ(), variable, "GOMEMLIMIT=100MiB") // that of a container of 128 MiB
				if out, err := command.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "Valid: ") {
					t.Errorf("validate says %v\n%s", err, out)
				}
			})
		}
	}
}

// TestStalledClientsDoNotHoldUpShutdown checks that each OTLP receiver ends requests whose client is gone or stalls: the
// Collector waits for them before it flushes windows, and has 60 seconds for all.
func TestStalledClientsDoNotHoldUpShutdown(t *testing.T) {
	protocol := regexp.MustCompile(`(?m)^ +endpoint: \$\{env:OTLP_(GRPC|HTTP)_LISTEN.*\n(?: {8,}.*\n)*`)
	bound := map[string]*regexp.Regexp{
		"GRPC": regexp.MustCompile(`keepalive:\n +server_parameters:\n +time: 20s\n +timeout: 10s\n`),
		"HTTP": regexp.MustCompile(` read_timeout: 30s`),
	}
	found := 0
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		names, err := fs.Glob(os.DirFS(configs), pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(configs, name))
			require.NoError(t, err)
			for _, section := range protocol.FindAllStringSubmatch(string(text), -1) {
				found++
				assert.True(t, bound[section[1]].MatchString(section[0]), "%s: no time limit in\n%s", name, section[0])
			}
		}
	}
	assert.NotZero(t, found, "no OTLP receiver found")
}

// TestSharesOfMemoryLeaveRoom adds up what a configuration may hold by its shares of the memory limit.
// A window needs half of its share again while it is exported.
func TestSharesOfMemoryLeaveRoom(t *testing.T) {
	share := regexp.MustCompile(`(?m)^ +(max_in_flight|memory_limit|max_memory): (.*?)( #.*)?$`)
	for config := range quick {
		text, err := os.ReadFile(filepath.Join(configs, config))
		require.NoError(t, err)
		if base := bases[config]; base != "" {
			below, err := os.ReadFile(filepath.Join(configs, base))
			require.NoError(t, err)
			if overridden := regexp.MustCompile(`(?m)^ +memory_limit: .*$`); overridden.Match(text) {
				below = overridden.ReplaceAll(below, nil)
			}
			text = append(text, below...)
		}
		percent, inFlight := 0.0, map[string]bool{}
		if strings.Contains(string(text), "profiles_view:") && !strings.Contains(string(text), "max_memory:") {
			percent += 10 // the default
		}
		for _, match := range share.FindAllStringSubmatch(string(text), -1) {
			n, err := strconv.ParseFloat(strings.TrimSuffix(match[2], "%"), 64)
			if err != nil {
				t.Logf("%s: %s is %s, not a share", config, match[1], match[2])
				continue
			}
			switch {
			case match[1] == "memory_limit":
				n *= 1.5
			case inFlight[match[2]]:
				continue // receivers of one kind share the largest; no config has two kinds with one value
			default:
				inFlight[match[2]] = true
			}
			percent += n
		}
		assert.LessOrEqual(t, percent, 75.0, "%s: the shares must leave a quarter", config)
	}
}

// builtProgram returns the path of a program in bin, or in an environment variable.
func builtProgram(t testing.TB, variable, name, how string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join("..", "bin", name)
	}
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		what := fmt.Sprintf("no program to test: %v (build it with %s, or name another with %s)", err, how, variable)
		if os.Getenv("CI") != "" || os.Getenv("E2E_REQUIRE") != "" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	return path
}

// gate enables the profiles signal in programs that do not do so themselves.
const gate = "--feature-gates=service.profilesSupport"
