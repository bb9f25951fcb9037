// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// components are the packages that a collector is built from.
var components = []string{"receiver/pprofreceiver", "processor/profilesdedupprocessor", "exporter/profilesfileexporter"}

// sources parses the Go files of a package that are not tests.
func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	var parsed []*ast.File
	for _, name := range files(t, isGo) {
		if path.Dir(name) != dir || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.SkipObjectResolution)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	require.NotEmpty(t, parsed, dir)
	return parsed
}

// TestComponentsExportOnlyTheirFactory: and Config, with the types that it is made of.
func TestComponentsExportOnlyTheirFactory(t *testing.T) {
	for _, dir := range components {
		for _, file := range sources(t, dir) {
			for _, decl := range file.Decls {
				for _, name := range declared(decl) {
					if ast.IsExported(name) && name != "NewFactory" && !strings.HasSuffix(name, "Config") {
						t.Errorf("%s exports %s", dir, name)
					}
				}
			}
		}
	}
}

// declared returns the names that a declaration gives to a package.
func declared(decl ast.Decl) (names []string) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			names = append(names, decl.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// TestReadmesTellAllKeys: each key of a component's configuration is in its README.
func TestReadmesTellAllKeys(t *testing.T) {
	for _, dir := range components {
		readme := string(read(t, dir+"/README.md"))
		for _, file := range sources(t, dir) {
			ast.Inspect(file, func(node ast.Node) bool {
				field, isField := node.(*ast.Field)
				if !isField || field.Tag == nil {
					return true
				}
				tag, err := strconv.Unquote(field.Tag.Value)
				require.NoError(t, err)
				key, _, _ := strings.Cut(reflect.StructTag(tag).Get("mapstructure"), ",")
				if key != "" && key != "-" && !regexp.MustCompile("(?m)(`|:|^ *(?:- )?)"+regexp.QuoteMeta(key)+"(`|:)").MatchString(readme) {
					t.Errorf("the README of %s says nothing of the key %s", dir, key)
				}
				return true
			})
		}
	}
}

var (
	metricNamed = regexp.MustCompile("`(?:otelcol_)?([a-z0-9_]+)`")
)

// TestReadmesTellAllMetrics: each metric of a component is in its README, by its name
// or, in a row of its kin, by what follows "_"; and each that is there exists.
func TestReadmesTellAllMetrics(t *testing.T) {
	for _, dir := range components {
		metrics := metricsOf(t, dir)
		prefix := commonPrefix(metrics)
		_, section, found := strings.Cut(string(read(t, dir+"/README.md")), "| metric | ")
		require.True(t, found, "the README of %s has no table of metrics", dir)
		section, _, _ = strings.Cut(section, "\n\n")
		told := map[string]bool{}
		for row := range strings.SplitSeq(section, "\n") {
			cells := strings.SplitN(row, "|", 3)
			if len(cells) < 3 {
				continue
			}
			last := ""
			for _, m := range metricNamed.FindAllStringSubmatch(cells[1], -1) {
				name := strings.TrimPrefix(m[1], prefix)
				if strings.HasPrefix(name, "_") { // kin of the one before
					name = kin(metrics, prefix, last, name)
				}
				last = name
				told[prefix+name] = true
			}
		}
		for _, metric := range metrics {
			if !told[metric] {
				t.Errorf("the README of %s does not tell of the metric %s", dir, metric)
			}
			delete(told, metric)
		}
		for name := range told {
			t.Errorf("the README of %s tells of a metric %s, which there is not", dir, name)
		}
	}
}

// metricsOf returns the names in a component's metadata, as they are in Prometheus
// without "otelcol_".
func metricsOf(t *testing.T, dir string) (metrics []string) {
	t.Helper()
	_, section, found := strings.Cut(string(read(t, dir+"/metadata.yaml")), "\ntelemetry:\n  metrics:\n")
	require.True(t, found, "%s has no metrics", dir)
	for _, m := range regexp.MustCompile(`(?m)^    ([a-z0-9_.]+):$`).FindAllStringSubmatch(section, -1) {
		metrics = append(metrics, strings.ReplaceAll(m[1], ".", "_"))
	}
	require.NotEmpty(t, metrics)
	return metrics
}

func commonPrefix(names []string) string {
	prefix := slices.Min(names)
	last := slices.Max(names)
	for !strings.HasPrefix(last, prefix) {
		prefix = prefix[:len(prefix)-1]
	}
	return prefix[:strings.LastIndex(prefix, "_")+1]
}

// kin is the metric that shares most of its name with last and ends in suffix.
func kin(metrics []string, prefix, last, suffix string) string {
	for cut := len(last); cut > 0; cut = strings.LastIndex(last[:cut], "_") {
		if slices.Contains(metrics, prefix+last[:cut]+suffix) {
			return last[:cut] + suffix
		}
	}
	return strings.TrimPrefix(suffix, "_")
}
