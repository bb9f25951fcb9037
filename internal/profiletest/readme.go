// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	readmeSection = regexp.MustCompile("^### `([^`]+)`$")
	quoted        = regexp.MustCompile("`([^`]+)`")
	onlyQuoted    = regexp.MustCompile("^ *`[^`]+`(?:, `[^`]+`)* *$")
)

// ReadmeDefaults returns what the tables "| key | default |" of the README.md in the
// current directory say: the defaults, as YAML, by key, below the section of the
// configuration that a table is in ("server::read_timeout"). Rows whose default is
// words are left out.
func ReadmeDefaults(tb testing.TB) map[string]string {
	tb.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		tb.Fatal(err)
	}
	defaults := map[string]string{}
	section, inTable := "", false
	for line := range strings.Lines(string(readme)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			section = ""
			if m := readmeSection.FindStringSubmatch(line); m != nil {
				section = m[1] + "::"
			}
		}
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			inTable = false
			continue
		}
		if strings.TrimSpace(cells[1]) == "key" && strings.TrimSpace(cells[2]) == "default" {
			inTable = true
		}
		if !inTable || !onlyQuoted.MatchString(cells[2]) {
			continue
		}
		keys, values := quoted.FindAllStringSubmatch(cells[1], -1), quoted.FindAllStringSubmatch(cells[2], -1)
		if len(values) != 1 && len(values) != len(keys) {
			tb.Errorf("the README has %d defaults for %d keys: %s", len(values), len(keys), line)
			continue
		}
		for i, key := range keys {
			defaults[section+key[1]] = values[min(i, len(values)-1)][1]
		}
	}
	if len(defaults) == 0 {
		tb.Fatal("the README has no table of defaults")
	}
	return defaults
}
