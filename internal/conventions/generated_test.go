// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conventions

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The packages of mdatagen have no file that was written by hand.
func TestMetadataIsGenerated(t *testing.T) {
	for _, dir := range components {
		for _, name := range []string{"metadata", "metadatatest"} {
			files, err := filepath.Glob(filepath.Join(root, dir, "internal", name, "*"))
			require.NoError(t, err)
			for _, file := range files {
				assert.True(t, strings.HasPrefix(filepath.Base(file), "generated_"), file)
			}
		}
	}
}
