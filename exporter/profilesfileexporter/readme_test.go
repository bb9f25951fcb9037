// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// The defaults that the README tells are those of the code.
func TestReadmeDefaults(t *testing.T) {
	defaults := profiletest.ReadmeDefaults(t)
	for _, key := range []string{"format", "sync_interval", "rotation::max_size", "retention::max_age", "group_by"} {
		assert.Contains(t, defaults, key)
	}
	for key, text := range defaults {
		if text == "[]" {
			continue // nothing, which is nil
		}
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
		require.NoError(t, err)
		value, err := retrieved.AsRaw()
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, confmap.NewFromStringMap(map[string]any{key: value}).Unmarshal(cfg), key)
		if !assert.ObjectsAreEqual(createDefaultConfig(), cfg) {
			t.Errorf("the README says that the default of %s is %s", key, text)
		}
	}
}
