// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers are our packages from the bottom up: leaves; the data model, its files and its formats; what works on payloads
// and files as a whole; components and commands. A package imports only packages of lower layers, earlier ones of its own
// layer, and those below its own directory. Components do not import each other. Add a new package here.
var layers = [][]string{
	{"internal/ingest/budget", "internal/component/panics", "internal/config", "internal/profiles/attrkey", "internal/profiles/sampletypes", "internal/profiles/processes", "internal/profiles/rate", "internal/profiles/timing", "internal/profiles/wire", "internal/component/httpguard", "internal/store/regularfile", "internal/symbolize/symbols", "internal/component/repeatlog"},
	{"internal/profiles/dictionary", "internal/profiles/labels", "internal/webui", "internal/profiles/merge", "translator/foldedtranslator", "translator/pproftranslator", "translator/jfrtranslator", "translator/perfscripttranslator", "translator/gotracetranslator"},
	{"internal/store", "internal/ingest", "internal/archive", "internal/query", "internal/symbolize", "internal/webui/catalog", "internal/webui/queryapi", "internal/webui/mcptools", "internal/webui/page"},
	slices.Concat(components, commands),
}

// commands are built from components.
var commands = []string{"cmd/otelcol-profiles", "cmd/otelprof", "internal/conventions/configtable"}

// independent packages check the others and therefore share no code with them, apart from the reader of the protobuf wire and
// the keys of attributes.
var independent = []string{"internal/profiles/conformance", "internal/profiletest", "internal/conventions"}

// pprofType is imported by these packages and by tests only. pdata types cross all other
// package boundaries.
const pprofType = "github.com/google/pprof/profile"

var mayImportPprof = []string{
	"translator/pproftranslator", "internal/profiletest", "exporter/pprofexporter",
	"internal/query", "internal/webui", "internal/webui/page", "internal/webui/queryapi", "connector/splunkprofilingconnector", "cmd/otelprof",
}

func TestImportsRunOneWay(t *testing.T) {
	for _, name := range files(t, isGo) {
		// They test the whole, or are not part of it.
		if slices.ContainsFunc([]string{"e2e/", "deploy/", "packaging/", "config/", "internal/tools/"}, func(outside string) bool { return strings.HasPrefix(name, outside) }) {
			continue
		}
		isTest := strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test")
		importer, layer := owner(path.Dir(name))
		if layer < 0 && !slices.Contains(independent, importer) {
			t.Errorf("%s is in no layer: add %s to layers", name, path.Dir(name))
			continue
		}
		for _, imported := range imports(t, name) {
			if imported == pprofType && !isTest && !slices.Contains(mayImportPprof, importer) {
				t.Errorf("%s imports %s, only %v may", name, imported, mayImportPprof)
			}
			local, ours := strings.CutPrefix(imported, module+"/")
			imported, importedLayer := owner(local)
			switch {
			case !ours:
			case !isTest && strings.HasSuffix(local, "test"):
				t.Errorf("%s imports %s, which is for tests only", name, local)
			case imported == importer:
			case slices.Contains(independent, importer):
				if !slices.Contains(independent, imported) && imported != "internal/profiles/wire" && imported != "internal/profiles/attrkey" {
					t.Errorf("%s imports %s: %s must share no code with what it tests", name, local, importer)
				}
			case imported == "internal/profiles/conformance" && importer == "cmd/otelprof":
				// It is what otelprof check runs.
			case isTest && (slices.Contains(independent, imported) || importedLayer < len(layers)-1):
				// Tests use any package below the components.
			case importedLayer < 0 || importedLayer > layer || importedLayer == layer && !isEarlier(layers[layer], imported, importer):
				t.Errorf("%s imports %s: a package may import lower layers, and earlier packages of its own, only", name, local)
			}
		}
	}
}

// isEarlier tells whether a package of a layer may import another one.
func isEarlier(layer []string, imported, importer string) bool {
	return slices.Index(layer, imported) < slices.Index(layer, importer) && !slices.Contains(components, importer)
}

// owner returns the listed package that dir is or is below of, and its layer, or -1.
func owner(dir string) (owner string, layer int) {
	layer = -1
	longer := func(listed string) bool { return within(dir, listed) && len(listed) > len(owner) }
	for _, listed := range independent {
		if longer(listed) {
			owner = listed
		}
	}
	for i, packages := range layers {
		for _, listed := range packages {
			if longer(listed) {
				owner, layer = listed, i
			}
		}
	}
	return owner, layer
}

// TestRoomsAreFew keeps internal a place that one can take in at a glance.
func TestRoomsAreFew(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, "internal"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(entries), 12, "put a new package into one of %v", entries)
}

func within(dir, parent string) bool {
	return dir == parent || strings.HasPrefix(dir, parent+"/")
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
