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
	"sigs.k8s.io/yaml"
)

// page is docs/operating.md.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlerts: Prometheus can read them, they name what there is, and each has its row
// in the page.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("prometheus", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := yaml.UnmarshalStrict(text, &rules); err != nil {
		t.Fatal(err)
	}
	known, page := metrics(t), page(t)
	seen := map[string]bool{}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if seen[rule.Alert] || !model.LabelName(rule.Alert).IsValid() {
				t.Errorf("the name %q is no name, or there twice", rule.Alert)
			}
			seen[rule.Alert] = true
			if len(checkExpression(t, known, rule.Alert, rule.Expr)) == 0 {
				t.Errorf("%s looks at no metric", rule.Alert)
			}
			if rule.For != "" {
				if _, err := model.ParseDuration(rule.For); err != nil {
					t.Errorf("%s: %v", rule.Alert, err)
				}
			}
			if s := rule.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
				t.Errorf("%s: severity is %q", rule.Alert, s)
			}
			for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(rule.Annotations["summary"], -1) {
				if !regexp.MustCompile(`by \([^)]*\b` + label[1] + `\b`).MatchString(rule.Expr) {
					t.Errorf("%s: its result has no label %s", rule.Alert, label[1])
				}
			}
			if !strings.Contains(page, "| `"+rule.Alert+"` |") {
				t.Errorf("docs/operating.md has no row for %s", rule.Alert)
			}
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `(Profiles\\w+)` \\|").FindAllStringSubmatch(page, -1) {
		if !seen[row[1]] {
			t.Errorf("docs/operating.md has a row for %s, which is no alert", row[1])
		}
	}
	if len(seen) == 0 {
		t.Error("no alerts")
	}
}

// TestDashboard: each panel asks for what there is, and all of our metrics are in one.
func TestDashboard(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("grafana", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
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
		if ids[panel.ID] || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("panel %s: its id is there twice, or it is too wide", panel.Title)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %s is empty", panel.Title)
		}
		for _, target := range panel.Targets {
			if !strings.Contains(target.Expr, `{job=~"$job", instance=~"$instance"`) {
				t.Errorf("panel %s is not of the chosen instances: %s", panel.Title, target.Expr)
			}
			expression := strings.NewReplacer(variables...).Replace(target.Expr)
			for _, name := range checkExpression(t, known, panel.Title, expression) {
				used[name] = true
			}
		}
	}
	for name, m := range known {
		if m.ours && !used[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestOperatingPage: it tells each of our metrics, and its expressions are right.
func TestOperatingPage(t *testing.T) {
	known, page := metrics(t), page(t)
	for name, m := range known {
		if m.ours && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/operating.md does not tell %s", name)
		}
	}
	for _, name := range regexp.MustCompile("`(otelcol_[a-z_]+)").FindAllStringSubmatch(page, -1) {
		if _, ok := known[name[1]]; !ok {
			if _, _, ok := find(known, name[1]); !ok {
				t.Errorf("docs/operating.md tells %s, which nobody has", name[1])
			}
		}
	}
	blocks := regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Error("docs/operating.md has no expressions")
	}
	for _, block := range blocks {
		for expression := range strings.SplitSeq(strings.TrimSpace(block[1]), "\n\n") {
			checkExpression(t, known, "docs/operating.md", expression)
		}
	}
}
