// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	uses       = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	pinned     = regexp.MustCompile(`^[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	from       = regexp.MustCompile(`(?m)^FROM (?:--platform=\S+ )?(\S+)`)
	withDigest = regexp.MustCompile(`^\S+:\S+@sha256:[0-9a-f]{64}$`)
)

// TestOthersCodeIsPinned: a tag of an action or image can be moved to another commit, a digest cannot.
func TestOthersCodeIsPinned(t *testing.T) {
	actions := 0
	for _, name := range files(t, func(name string) bool { return strings.HasPrefix(name, ".github/") }) {
		for _, m := range uses.FindAllStringSubmatch(string(read(t, name)), -1) {
			if !strings.HasPrefix(m[1], "./") {
				actions++
				assert.Regexp(t, pinned, m[1], name)
			}
		}
	}
	assert.Greater(t, actions, 10)
	for _, name := range files(t, func(name string) bool { return strings.HasSuffix(name, "Dockerfile") }) {
		content := string(read(t, name))
		assert.NotContains(t, content, "# syntax=", "%s: the frontend of BuildKit would be an image without digest", name)
		images := from.FindAllStringSubmatch(content, -1)
		require.NotEmpty(t, images, name)
		for _, m := range images {
			assert.Regexp(t, withDigest, m[1], name)
		}
	}
}
