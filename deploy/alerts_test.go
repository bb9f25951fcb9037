// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// read returns the content of a file.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return text
}

// runbooks is the page that the alerts link to.
const runbooks = "https://github.com/otelcol-profiles/otelcol-profiles/blob/main/docs/troubleshooting.md#"

// TestAlerts checks that Prometheus can read the alerts, that their metrics and labels
// exist, and that each has a section in docs/troubleshooting.md.
func TestAlerts(t *testing.T) {
	var rules struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	}
	require.NoError(t, yaml.UnmarshalStrict(read(t, "prometheus", "alerts.yaml"), &rules))
	known, runbook := metrics(t), string(read(t, "..", "docs", "troubleshooting.md"))
	seen := map[string]bool{}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			assert.True(t, !seen[rule.Alert] && model.LabelName(rule.Alert).IsValid(), "invalid or duplicate name %q", rule.Alert)
			seen[rule.Alert] = true
			assert.NotEmpty(t, checkExpression(t, known, rule.Alert, rule.Expr), "%s uses no metric", rule.Alert)
			if rule.For != "" {
				_, err := model.ParseDuration(rule.For)
				assert.NoError(t, err, rule.Alert)
			}
			assert.Contains(t, []string{"critical", "warning", "info"}, rule.Labels["severity"], rule.Alert)
			for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule.Annotations["summary"], -1) {
				assert.True(t, regexp.MustCompile(`by \([^)]*\b`+label[1]+`\b`).MatchString(rule.Expr), "the result of %s has no label %s", rule.Alert, label[1])
			}
			assert.Equal(t, runbooks+strings.ToLower(rule.Alert), rule.Annotations["runbook_url"], "%s: runbook_url", rule.Alert)
			assert.Contains(t, runbook, "\n### "+rule.Alert+"\n\n", "docs/troubleshooting.md has no section for %s", rule.Alert)
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^### (Profiles.*)$`).FindAllStringSubmatch(runbook, -1) {
		assert.True(t, seen[section[1]], "docs/troubleshooting.md has a section for %s, which is no alert", section[1])
	}
	assert.NotEmpty(t, seen, "no alerts")
}

// TestDashboard checks that the metrics and labels of each panel exist, and that each of our
// metrics is in a panel.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Title      string
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ RefID, Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(read(t, "grafana", "dashboard.json"), &dashboard))
	known := metrics(t)
	used, ids := map[string]bool{}, map[int]bool{}
	variables := []string{"$__rate_interval", "5m"}
	for _, variable := range dashboard.Templating.List {
		variables = append(variables, "$"+variable.Name, ".*")
		if match := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(variable.Definition); match != nil {
			checkExpression(t, known, "$"+variable.Name, strings.ReplaceAll(match[1], "$job", ".*"))
		}
	}
	for _, panel := range dashboard.Panels {
		assert.False(t, ids[panel.ID], "panel %s: duplicate id", panel.Title)
		assert.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, "panel %s: columns", panel.Title)
		ids[panel.ID] = true
		assert.True(t, panel.Type == "row" || len(panel.Targets) > 0, "panel %s is empty", panel.Title)
		for _, target := range panel.Targets {
			assert.Contains(t, target.Expr, `{job=~"$job", instance=~"$instance"`, "panel %s does not filter by $job and $instance: %s", panel.Title, target.Expr)
			expression := strings.NewReplacer(variables...).Replace(target.Expr)
			for _, name := range checkExpression(t, known, panel.Title, expression) {
				used[name] = true
			}
		}
	}
	for name, m := range known {
		assert.True(t, !m.ours || used[name], "no panel shows %s", name)
	}
}

// TestPagesNameExistingMetrics checks the metrics and expressions in docs.
func TestPagesNameExistingMetrics(t *testing.T) {
	known, expressions := metrics(t), 0
	for _, name := range []string{"operating.md", "troubleshooting.md", "delivery-guarantees.md"} {
		text := string(read(t, "..", "docs", name))
		for _, metric := range regexp.MustCompile("`(otelcol_[a-z_]+)").FindAllStringSubmatch(text, -1) {
			_, whole := known[metric[1]]
			_, _, ofSeries := find(known, metric[1])
			assert.True(t, whole || ofSeries, "docs/%s names %s, which does not exist", name, metric[1])
		}
		for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(text, -1) {
			for expression := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n\n") {
				checkExpression(t, known, "docs/"+name, expression)
				expressions++
			}
		}
	}
	assert.NotZero(t, expressions, "docs/operating.md has no expressions")
}
