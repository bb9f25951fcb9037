// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// metric is one as Prometheus sees it.
type metric struct {
	ours, histogram bool
	labels          map[string]string // description and values of each
}

// ours are the components, whose metrics must all be in the dashboard.
var ours = []string{
	"receiver/pprofreceiver", "receiver/profilesfilereceiver", "processor/profilesdedupprocessor", "processor/symbolizeprocessor", "exporter/profilesfileexporter",
	"exporter/pprofexporter", "extension/profilesviewextension",
}

// collectors are the modules of the Collector whose metrics our pages and alerts name.
var collectors = []string{
	"go.opentelemetry.io/collector/service",
	"go.opentelemetry.io/collector/receiver/receiverhelper",
	"go.opentelemetry.io/collector/exporter/exporterhelper",
}

// metrics returns all metrics in the metadata of the components, under the names that the
// Collector's own endpoint uses: without suffixes for units and types.
func metrics(t *testing.T) map[string]metric {
	t.Helper()
	found := map[string]metric{"up": {}}
	for _, dir := range ours {
		addMetrics(t, found, filepath.Join("..", filepath.FromSlash(dir), "metadata.yaml"), true)
	}
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-m", "-f", "{{.Dir}}"}, collectors...)...)
	list.Dir = filepath.Join("..", "cmd", "otelcol-profiles")
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	for dir := range strings.FieldsSeq(string(out)) {
		addMetrics(t, found, filepath.Join(dir, "metadata.yaml"), false)
	}
	return found
}

var (
	notOfLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)
)

func addMetrics(t *testing.T, found map[string]metric, file string, ours bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var metadata struct {
		Attributes map[string]struct {
			NameOverride string `json:"name_override"`
			Description  string
			Enum         []string
		}
		Telemetry struct {
			Metrics map[string]struct {
				Attributes []string
				Histogram  *struct{}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &metadata))
	require.NotEmpty(t, metadata.Telemetry.Metrics, "%s has no metrics", file)
	for name, m := range metadata.Telemetry.Metrics {
		labels := map[string]string{}
		for _, key := range m.Attributes {
			attribute := metadata.Attributes[key]
			if attribute.NameOverride != "" {
				key = attribute.NameOverride
			}
			labels[notOfLabels.ReplaceAllString(key, "_")] = attribute.Description + " " + strings.Join(attribute.Enum, " ")
		}
		found["otelcol_"+name] = metric{ours: ours, histogram: m.Histogram != nil, labels: labels}
	}
}

var (
	// ofHistogram ends the names of the series of a histogram.
	ofHistogram = regexp.MustCompile(`_(bucket|sum|count)$`)
	// everywhere are labels that Prometheus or the Collector's helpers add.
	everywhere = []string{"__name__", "job", "instance", "exporter", "receiver", "extension", "data_type"}
	words      = regexp.MustCompile(`[A-Za-z0-9_]+`)
)

// find returns the metric that a series belongs to.
func find(known map[string]metric, name string) (string, metric, bool) {
	if m, ok := known[name]; ok && !m.histogram {
		return name, m, true
	}
	base := ofHistogram.ReplaceAllString(name, "")
	m, ok := known[base]
	return base, m, ok && m.histogram && base != name
}

// checkExpression checks that the metrics, labels and values in an expression exist. It
// returns the metrics.
func checkExpression(t *testing.T, known map[string]metric, where, expression string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, expression)
		return nil
	}
	allowed := slices.Clone(everywhere)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		name, m, ok := find(known, selector.Name)
		if !ok {
			t.Errorf("%s: metric %s does not exist", where, selector.Name)
			return nil
		}
		names = append(names, name)
		if m.histogram {
			allowed = append(allowed, "le")
		}
		for key := range m.labels {
			allowed = append(allowed, key)
		}
		for _, matcher := range selector.LabelMatchers {
			values, ok := m.labels[matcher.Name]
			if !ok {
				assert.True(t, slices.Contains(everywhere, matcher.Name), "%s: %s has no label %s", where, selector.Name, matcher.Name)
				continue
			}
			if matcher.Type == labels.MatchRegexp || matcher.Type == labels.MatchEqual {
				for value := range strings.SplitSeq(matcher.Value, "|") {
					assert.True(t, slices.Contains(words.FindAllString(values, -1), value), "%s: %s of %s is never %q", where, matcher.Name, selector.Name, value)
				}
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		var keys []string
		switch node := node.(type) {
		case *parser.AggregateExpr:
			keys = node.Grouping
		case *parser.BinaryExpr:
			if node.VectorMatching != nil {
				keys = node.VectorMatching.MatchingLabels
			}
		}
		for _, key := range keys {
			assert.True(t, slices.Contains(allowed, key), "%s: no metric has the label %s\n%s", where, key, expression)
		}
		return nil
	})
	return names
}

// TestMetricNames compares the metrics of the running program with the metadata that the
// other tests use.
func TestMetricNames(t *testing.T) {
	t.Parallel() // it waits most of the time
	bin, known := program(t), metrics(t)
	dir := t.TempDir()
	push, scrape := freePort(t), freePort(t)
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, `
receivers:
  pprof:
    server: {endpoint: localhost:%d}
    self: {collection_interval: 1s, cpu_duration: 1ms}
    remote: {collection_interval: 500ms, timeout: 400ms, targets: [{endpoint: 'http://localhost:1/', profiles: [heap]}]}
    file: {include: [%q], poll_interval: 100ms}
processors: {profiles_dedup: {window: 200ms}}
exporters:
  profiles_file: {directory: %q, rotation: {max_age: 200ms}, retention: {max_files: 1}}
  otlp_grpc: {endpoint: 'localhost:1', sending_queue: {sizer: bytes, queue_size: 1000000}}
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: %d, without_scope_info: true, without_type_suffix: true, without_units: true}}}}]}}
  pipelines:
    profiles/1: {receivers: [pprof], processors: [profiles_dedup], exporters: [profiles_file]}
    profiles/2: {receivers: [pprof], exporters: [otlp_grpc]}
`, push, filepath.Join(dir, "*.pb"), filepath.Join(dir, "profiles"), scrape), 0o600); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wrong.pb"), []byte("no profile"), 0o600))
	logs, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	defer func() { _ = logs.Close() }()
	command := exec.CommandContext(t.Context(), bin, "--config="+config)
	command.Dir, command.Stdout, command.Stderr = dir, logs, logs
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill() // an error means that it has ended
		_ = command.Wait()
	})

	// These appear last.
	awaited := []string{
		"otelcol_exporter_profiles_file_removed_files", "otelcol_receiver_pprof_files", "otelcol_receiver_pprof_rejected_requests",
		"otelcol_processor_profiles_dedup_outgoing_samples", "otelcol_receiver_pprof_target_up", "otelcol_exporter_queue_capacity", "otelcol_process_memory_rss",
	}
	seen := map[string]bool{}
	for deadline := time.Now().Add(time.Minute); len(awaited) > 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(logs.Name())
			t.Fatalf("no %v after a minute\n%s", awaited, text)
		}
		rejected, err := http.Post(fmt.Sprintf("http://localhost:%d/v1/pprof", push), "", strings.NewReader("no profile"))
		if err != nil {
			continue // not there yet
		}
		_ = rejected.Body.Close()
		response, err := http.Get(fmt.Sprintf("http://localhost:%d/metrics", scrape))
		if err != nil {
			continue
		}
		families, err := new(expfmt.TextParser).TextToMetricFamilies(response.Body)
		_ = response.Body.Close()
		require.NoError(t, err)
		for name, family := range families {
			awaited = slices.DeleteFunc(awaited, func(one string) bool { return one == name })
			if seen[name] || !strings.HasPrefix(name, "otelcol_") {
				continue
			}
			seen[name] = true
			m, ok := known[name]
			if !ok {
				if strings.Contains(name, "profile") || strings.Contains(name, "pprof") {
					t.Errorf("%s is in no metadata.yaml", name)
				}
				continue
			}
			assert.Equal(t, m.histogram, family.GetType().String() == "HISTOGRAM", "%s is a %s", name, family.GetType())
			for _, label := range family.GetMetric()[0].GetLabel() {
				if _, ok := m.labels[label.GetName()]; m.ours && !ok {
					t.Errorf("%s has a label %s, which is not in metadata.yaml", name, label.GetName())
				}
			}
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
