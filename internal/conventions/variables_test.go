// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	usedVariable       = regexp.MustCompile(`\$\{env:(\w+):-([^}]*)\}`)
	documentedVariable = regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\| (.*?) \\| (.*?) \\| .* \\|$")
)

// TestVariablesOfConfigurationsAreDocumented compares the table of config/README.md with the configurations.
// Those for backends have comments of their own.
func TestVariablesOfConfigurationsAreDocumented(t *testing.T) {
	users, defaults, all := map[string][]string{}, map[string][]string{}, []string{}
	for _, file := range files(t, func(name string) bool {
		return name == "cmd/otelcol-profiles/default-config.yaml" || strings.HasPrefix(name, "config/") && path.Ext(name) == ".yaml" &&
			path.Base(name) != "builder-config.yaml" && path.Base(path.Dir(name)) != "backends"
	}) {
		name := strings.TrimSuffix(path.Base(file), ".yaml")
		switch name {
		case "config":
			name = path.Base(path.Dir(file))
		case "default-config":
			name = "default"
		}
		all = append(all, name)
		for _, m := range usedVariable.FindAllStringSubmatch(string(read(t, file)), -1) {
			if !slices.Contains(users[m[1]], name) {
				users[m[1]] = append(users[m[1]], name)
			}
			if value := "`" + m[2] + "`"; !slices.Contains(defaults[m[1]], value) {
				defaults[m[1]] = append(defaults[m[1]], value)
			}
		}
	}
	require.NotEmpty(t, users)
	documented := documentedVariable.FindAllStringSubmatch(string(read(t, "config/README.md")), -1)
	assert.Len(t, documented, len(users))
	for _, m := range documented {
		variable, names, values := m[1], strings.Split(m[2], ", "), m[3]
		if except, found := strings.CutPrefix(m[2], "all except "); found {
			names = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(strings.Split(except, ", "), name) })
		}
		assert.ElementsMatch(t, users[variable], names, "used by, of %s", variable)
		for _, value := range defaults[variable] {
			assert.Contains(t, values, value, "default of %s", variable)
		}
		assert.Equal(t, 2*len(defaults[variable]), strings.Count(values, "`"), "defaults of %s", variable)
	}
}
