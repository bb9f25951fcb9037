// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const rowID = `[A-Z][0-9]+`

var (
	documentedRow = regexp.MustCompile(`(?m)^\| (` + rowID + `) \|`)
	// The rows that a test covers end its name.
	rowSuffix = regexp.MustCompile(`(?m)^func Test\w+?((?:_` + rowID + `)+)\(t \*testing\.T\)`)
)

// TestEachRowHasATest compares the rows of docs/reliability.md with the rows that tests
// are named after.
func TestEachRowHasATest(t *testing.T) {
	var documented []string
	for _, m := range documentedRow.FindAllSubmatch(read(t, "docs/reliability.md"), -1) {
		require.NotContains(t, documented, string(m[1]), "duplicate row")
		documented = append(documented, string(m[1]))
	}
	require.NotEmpty(t, documented)

	var tested []string
	for _, name := range files(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
		content := read(t, name)
		for _, m := range rowSuffix.FindAllSubmatch(content, -1) {
			for row := range strings.SplitSeq(strings.TrimPrefix(string(m[1]), "_"), "_") {
				if !slices.Contains(tested, row) {
					tested = append(tested, row)
				}
			}
		}
	}
	assert.ElementsMatch(t, documented, tested)
}
