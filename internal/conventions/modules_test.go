// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The collector set that everything is built with. Its modules carry one of two
// versions, by their maturity.
var collectorSet = []string{"v0.165.0", "v1.71.0"}

var collectorModules = []string{
	"go.opentelemetry.io/collector",
	"github.com/open-telemetry/opentelemetry-collector-contrib",
}

// otherSets lists the modules that may name another collector set: none of
// their code gets into a build of the components.
var otherSets = map[string][]string{
	"internal/tools/go.mod": {"v0.159.0", "v1.65.0"}, // mdatagen's
}

// TestModuleSet fails when a module of the collector moved away from the set,
// as `go mod tidy` does with one that is imported and not yet listed.
func TestModuleSet(t *testing.T) {
	for _, file := range files(t, isModule) {
		allowed := slices.Concat(collectorSet, otherSets[file])
		for _, required := range requirements(t, file) {
			if isCollectorModule(required.Path) && !slices.Contains(allowed, required.Version) {
				t.Errorf("%s requires %s %s, want one of %v: run `go get %s@<version>` in that module",
					file, required.Path, required.Version, allowed, required.Path)
			}
		}
	}
}

type requirement struct{ Path, Version string }

func requirements(t *testing.T, file string) []requirement {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err, "go mod edit -json %s", file)
	var mod struct{ Require []requirement }
	require.NoError(t, json.Unmarshal(out, &mod), file)
	return mod.Require
}

func isCollectorModule(path string) bool {
	return slices.ContainsFunc(collectorModules, func(module string) bool {
		return path == module || strings.HasPrefix(path, module+"/")
	})
}
