// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// The defaults that the README tells are those of the code.
func TestReadmeDefaults(t *testing.T) {
	sections := map[string]any{
		"server": nil, "self": nil,
		"remote": map[string]any{"targets": []any{map[string]any{"endpoint": "http://localhost:6060"}}},
		"file":   map[string]any{"include": "*.pb.gz"},
	}
	unmarshal := func(conf *confmap.Conf) *Config {
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, conf.Unmarshal(cfg))
		return cfg
	}
	want := unmarshal(confmap.NewFromStringMap(maps.Clone(sections)))
	defaults := profiletest.ReadmeDefaults(t)
	for _, key := range []string{"timestamp_label", "server::read_timeout", "remote::timeout", "file::poll_interval", "self::profiles"} {
		assert.Contains(t, defaults, key)
	}
	// Those whose default the configuration leaves open, for lists that depend on others.
	assert.Equal(t, defaults["remote::profiles"], "[cpu, heap, goroutine, mutex, block]")
	assert.Equal(t, `["", gzip, zstd]`, defaults["server::compression_algorithms"])
	delete(defaults, "remote::profiles")
	delete(defaults, "server::compression_algorithms")
	for key, text := range defaults {
		if text == "[]" || text == "{}" {
			continue // nothing, which is nil
		}
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
		require.NoError(t, err)
		value, err := retrieved.AsRaw()
		require.NoError(t, err)
		base := confmap.NewFromStringMap(maps.Clone(sections))
		require.NoError(t, base.Merge(confmap.NewFromStringMap(map[string]any{key: value})))
		if !assert.ObjectsAreEqual(want, unmarshal(base)) {
			t.Errorf("the README says that the default of %s is %s", key, text)
		}
	}
}
