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

// notProduction are tests and their helpers, generated files, and tools.
var notProduction = regexp.MustCompile(`_test\.go$|generated_|profiletest|test/|^internal/(conventions|configtable|tools)/|^(packaging|e2e|deploy|config)/`)

type size struct{ files, lines int }

// TestPackagesAreFewAndSmall counts packages with code, and their files and lines without blanks and comments.
func TestPackagesAreFewAndSmall(t *testing.T) {
	packages := map[string]size{}
	for _, name := range files(t, isGo) {
		if notProduction.MatchString(name) {
			continue
		}
		s := packages[path.Dir(name)]
		s.files++
		for line := range strings.Lines(string(read(t, name))) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				s.lines++
			}
		}
		packages[path.Dir(name)] = s
	}
	assert.LessOrEqual(t, len(packages), 50, "packages")
	for name, s := range packages {
		assert.LessOrEqual(t, s.files, 15, "files of %s", name)
		assert.LessOrEqual(t, s.lines, 2250, "lines of %s", name)
	}
}
