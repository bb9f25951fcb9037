// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport is the order of our packages: which of them each may import, apart
// from what is below its own directory. Imports run one way, from the
// components down to the dictionary, and components never import each other.
var mayImport = map[string][]string{
	"internal/wire":        {},
	"internal/bytesize":    {},
	"internal/confnumber":  {},
	"internal/filewatch":   {},
	"internal/conformance": {},
	"internal/dictionary":  {"internal/wire"},
	"internal/merge":       {"internal/dictionary"},
	"internal/segment":     {"internal/wire"},
	"internal/ingest":      {"translator/pproftranslator", "internal/dictionary"},

	"translator/pproftranslator": {"internal/dictionary", "internal/wire"},

	"receiver/pprofreceiver":           {"translator/pproftranslator", "internal/ingest", "internal/merge", "internal/dictionary", "internal/filewatch", "internal/wire", "internal/bytesize", "internal/confnumber"},
	"processor/profilesdedupprocessor": {"internal/merge", "internal/dictionary", "internal/bytesize", "internal/confnumber"},
	"exporter/profilesfileexporter":    {"internal/segment", "internal/dictionary", "internal/wire", "translator/pproftranslator", "internal/bytesize", "internal/confnumber"},

	"internal/load": {"internal/wire"},

	"cmd/pprofload":        {"internal/load"},
	"cmd/otelcol-profiles": {"receiver/pprofreceiver", "processor/profilesdedupprocessor", "exporter/profilesfileexporter"},

	// Tests only. What is tested here cannot be tested with itself.
	"internal/profiletest": {"internal/conformance", "internal/wire"},
	"internal/conventions": {},
}

// testsMayImport is what every test may import besides.
var testsMayImport = []string{"internal/profiletest", "internal/conformance", "internal/dictionary", "translator/pproftranslator"}

// pprofTypes stay in these packages (and in tests); pdata crosses every other
// boundary.
const pprofTypes = "github.com/google/pprof/profile"

var mayImportPprof = []string{"translator/pproftranslator", "receiver/pprofreceiver", "internal/profiletest"}

func TestImportsRunOneWay(t *testing.T) {
	for _, name := range files(t, isGo) {
		if strings.HasPrefix(name, "e2e/") || strings.HasPrefix(name, "deploy/") { // sees everything, from outside
			continue
		}
		dir := path.Dir(name)
		owner, allowed, listed := rule(dir)
		if !listed {
			t.Errorf("%s: there is no rule for this package, add one to mayImport", dir)
			continue
		}
		isTest := strings.HasSuffix(name, "_test.go")
		for _, imported := range imports(t, name) {
			if imported == pprofTypes && !isTest && !slices.Contains(mayImportPprof, owner) {
				t.Errorf("%s imports %s, which stays in %v", name, imported, mayImportPprof)
			}
			local, ours := strings.CutPrefix(imported, module+"/")
			if !ours || within(local, owner) {
				continue
			}
			if slices.Contains(allowed, local) || isTest && slices.Contains(testsMayImport, local) {
				continue
			}
			t.Errorf("%s imports %s; %s may import only %v", name, local, owner, allowed)
		}
	}
}

// rule finds the entry of mayImport that dir is in.
func rule(dir string) (owner string, allowed []string, listed bool) {
	for owner, allowed := range mayImport {
		if within(dir, owner) {
			return owner, allowed, true
		}
	}
	return "", nil, false
}

func within(dir, owner string) bool {
	return dir == owner || strings.HasPrefix(dir, owner+"/")
}

func imports(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ImportsOnly)
	require.NoError(t, err)
	paths := make([]string, len(file.Imports))
	for i, spec := range file.Imports {
		paths[i], err = strconv.Unquote(spec.Path.Value)
		require.NoError(t, err, "%s: %s", name, spec.Path.Value)
	}
	return paths
}
