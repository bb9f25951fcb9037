// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLifeOfAPayload checks that the calls that ARCHITECTURE.md shows exist, and that they fit on a screen.
func TestLifeOfAPayload(t *testing.T) {
	_, text, found := strings.Cut(string(read(t, "ARCHITECTURE.md")), "<!-- life of a payload -->")
	assert.True(t, found)
	text, _, _ = strings.Cut(text, "\n## ")
	inPackage := ""
	elsewhere := regexp.MustCompile(`^((?:internal|translator)/\S+?)(:|$)`)
	calls := 0
	for line := range strings.Lines(text) {
		name, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		if strings.Contains(name, "/") {
			inPackage = name
			continue
		}
		calls++
		of := inPackage
		if match := elsewhere.FindStringSubmatch(strings.TrimSpace(what)); match != nil {
			of = match[1]
		}
		declaration := regexp.MustCompile(`(?m)^func (\(.*\) )?` + name + `\(`)
		declared := false
		for _, file := range files(t, func(file string) bool {
			return isGo(file) && path.Dir(file) == of && !strings.HasSuffix(file, "_test.go")
		}) {
			declared = declared || declaration.Match(read(t, file))
		}
		assert.True(t, declared, "%s has no function %s", of, name)
	}
	assert.LessOrEqual(t, calls, 40)
	assert.GreaterOrEqual(t, calls, 30)
}
