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

// TestLinksResolve checks that relative links in Markdown lead to files and headings that
// exist.
func TestLinksResolve(t *testing.T) {
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
				t.Errorf("%s links to %s, which does not exist", name, m[1])
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
