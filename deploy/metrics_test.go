// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

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

var notOfLabels = regexp.MustCompile(`[^a-zA-Z0-9_]`)

func addMetrics(t *testing.T, found map[string]metric, file string, ours bool) {
	t.Helper()
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
	require.NoError(t, yaml.Unmarshal(read(t, file), &metadata))
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
