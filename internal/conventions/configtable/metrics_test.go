// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package configtable

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// metricsPage is the page of all metrics.
const metricsPage = "docs/metrics.md"

const metricsIntroduction = `# Metrics

Each metric has a label with the ID of its component, such as ` + "`processor=\"profiles_dedup/files\"`" + `, which this page leaves
out. A processor in several pipelines counts for all of them together. Metrics are counters unless stated.
`

// metadata are the parts of a metadata.yaml that describe metrics.
type metadata struct {
	Type       string
	Status     struct{ Class string }
	Attributes map[string]struct {
		NameOverride string `yaml:"name_override"`
		Description  string
		Enum         []string
	}
	Telemetry struct{ Metrics map[string]metric }
}

type metric struct {
	Description, Unit string
	Gauge, Histogram  *struct{}
	Sum               *struct{ Monotonic bool }
	Attributes        []string
}

func TestMetricsPageIsUpToDate(t *testing.T) {
	t.Chdir("../../..")
	page := metricsIntroduction
	for _, dir := range slices.Sorted(maps.Keys(components)) {
		text, err := os.ReadFile(filepath.Join(filepath.FromSlash(dir), "metadata.yaml"))
		require.NoError(t, err)
		var m metadata
		require.NoError(t, yaml.Unmarshal(text, &m), dir)
		page += m.section()
	}
	current, err := os.ReadFile(metricsPage)
	if *update {
		require.NoError(t, os.WriteFile(metricsPage, []byte(page), 0o600))
		return
	}
	require.NoError(t, err)
	assert.Equal(t, page, string(current), "%s is out of date: run `make generate`", metricsPage)
}

// section lists the metrics of a component, and the values of their labels.
func (m metadata) section() string {
	if len(m.Telemetry.Metrics) == 0 {
		return ""
	}
	var list, labels strings.Builder
	fmt.Fprintf(&list, "\n## %s %s\n\n", m.Type, m.Status.Class)
	of := map[string][]string{} // metrics by the key of an attribute
	for _, name := range slices.Sorted(maps.Keys(m.Telemetry.Metrics)) {
		metric := m.Telemetry.Metrics[name]
		var names []string
		for _, key := range metric.Attributes {
			if key != m.Status.Class {
				of[key] = append(of[key], "`…_"+strings.TrimPrefix(name, m.Status.Class+"_"+m.Type+"_")+"`")
				names = append(names, "`"+m.label(key)+"`")
			}
		}
		by := ""
		if len(names) > 0 {
			by = " by " + strings.Join(names, ", ")
		}
		fmt.Fprintf(&list, "- `otelcol_%s`%s: %s%s\n", name, by, metric.Description, metric.kind())
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		attribute := m.Attributes[key]
		fmt.Fprintf(&labels, "- `%s`", m.label(key))
		if attribute.NameOverride != "" {
			fmt.Fprintf(&labels, " of %s", strings.Join(of[key], ", "))
		}
		fmt.Fprintf(&labels, ": %s", strings.TrimSpace(attribute.Description))
		if slices.ContainsFunc(attribute.Enum, func(value string) bool { return !strings.Contains(attribute.Description, value) }) {
			fmt.Fprintf(&labels, " `%s`.", strings.Join(attribute.Enum, "`, `"))
		}
		labels.WriteString("\n")
	}
	if labels.Len() > 0 {
		list.WriteString("\nLabels:\n\n" + labels.String())
	}
	return list.String()
}

// label is the name that Prometheus shows.
func (m metadata) label(key string) string {
	if name := m.Attributes[key].NameOverride; name != "" {
		key = name
	}
	return strings.ReplaceAll(key, ".", "_")
}

// kind says how a metric differs from a counter of things.
func (m metric) kind() string {
	unit := ""
	switch m.Unit {
	case "By":
		unit = " in bytes"
	case "s":
		unit = " in seconds"
	}
	switch {
	case m.Histogram != nil:
		return " Histogram" + unit + "."
	case m.Gauge != nil || m.Sum != nil && !m.Sum.Monotonic:
		return " Gauge" + unit + "."
	case unit != "":
		return " Counter" + unit + "."
	}
	return ""
}
