// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

var (
	ourAttribute        = regexp.MustCompile(`"(otelcol_profiles\.[a-z_.]+)"`)
	documentedAttribute = regexp.MustCompile("`(otelcol_profiles\\.[a-z_.]+)`")
)

// TestOurAttributesAreDocumented: the code has each key of ours once, and the glossary has them all.
func TestOurAttributesAreDocumented(t *testing.T) {
	var keys, documented []string
	for _, name := range files(t, isGo) {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			continue
		}
		for _, m := range ourAttribute.FindAllStringSubmatch(string(read(t, name)), -1) {
			assert.NotContains(t, keys, m[1], "%s repeats the key of a constant", name)
			keys = append(keys, m[1])
		}
	}
	_, table, _ := strings.Cut(string(read(t, "docs/glossary.md")), "\n## Attributes\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range documentedAttribute.FindAllStringSubmatch(table, -1) {
		documented = append(documented, m[1])
	}
	slices.Sort(keys)
	assert.NotEmpty(t, keys)
	assert.ElementsMatch(t, keys, documented)
}
