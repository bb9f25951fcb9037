// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s#]*)(#[^)\s]*)?\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInAnchors = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

func isMarkdown(name string) bool { return path.Ext(name) == ".md" }

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return err == nil
}

// TestLinksLead: links of our pages lead to files, and to headings, that there are.
func TestLinksLead(t *testing.T) {
	for _, name := range files(t, isMarkdown) {
		for _, m := range markdownLink.FindAllStringSubmatch(string(read(t, name)), -1) {
			target, anchor := m[1], strings.TrimPrefix(m[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			page := name
			if target != "" {
				page = path.Join(path.Dir(name), target)
			}
			if !exists(page) {
				t.Errorf("%s links to %s, which there is not", name, m[1])
				continue
			}
			if anchor != "" && isMarkdown(page) && !hasHeading(string(read(t, page)), anchor) {
				t.Errorf("%s links to %s, which has no heading #%s", name, page, anchor)
			}
		}
	}
}

func hasHeading(page, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		text := notInAnchors.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(text, " ", "-") == anchor {
			return true
		}
	}
	return false
}

var quotedPath = regexp.MustCompile("`([a-z0-9][a-zA-Z0-9_.*/-]*)`")

// TestArchitectureNamesWhatThereIs: the files that ARCHITECTURE.md says to look at
// exist. Those without a directory are in that of the one before.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	_, table, _ := strings.Cut(string(read(t, "ARCHITECTURE.md")), "| to change | look at |")
	table, _, _ = strings.Cut(table, "\n\n")
	found := 0
	for row := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			continue
		}
		dir := ""
		for _, m := range quotedPath.FindAllStringSubmatch(cells[2], -1) {
			name := m[1]
			switch {
			case strings.Contains(name, "/") || exists(name):
				if dir = path.Dir(name); path.Ext(name) == "" {
					dir = name
				}
			case path.Ext(name) == "":
				continue // no file, but a word
			default:
				name = path.Join(dir, name)
			}
			matches, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(name)))
			if (err != nil || len(matches) == 0) && name != "bin/kafka" { // which is generated
				t.Errorf("ARCHITECTURE.md names %s, which there is not", name)
			}
			found++
		}
	}
	if found < 40 {
		t.Errorf("ARCHITECTURE.md names %d files; is this test reading the table?", found)
	}
}
