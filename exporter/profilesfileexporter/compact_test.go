// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestInvalidCompactionNamesTheKey_D3(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, profiletest.LoadConfig("{directory: d, compact: {}}", cfg))
	assert.Equal(t, defaultCompact(), *cfg.Compact.Get())
	profiletest.CheckConfigs(t, createDefaultConfig, map[string]string{
		"{directory: d, compact: {after: -1s}}":                   "compact::after is -1s: must be 0 or more",
		"{directory: d, compact: {into: [], resolution: []}}":     "compact::into is []: must be one duration or more",
		"{directory: d, compact: {into: [1h, 90m]}}":              "compact::into is 1h30m0s: must be a multiple of 1h0m0s",
		"{directory: d, compact: {into: [24h, 1h]}}":              "compact::into is 1h0m0s: must be a multiple of 24h0m0s",
		"{directory: d, compact: {into: [30s, 1h]}}":              "compact::into is 30s: must be a multiple of 1m0s",
		"{directory: d, compact: {resolution: [1m]}}":             "compact::resolution is [1m0s]: must be a duration for each of compact::into, which has 2",
		"{directory: d, compact: {into: [1h], resolution: [7m]}}": "compact::resolution is 7m0s: must be a divisor of compact::into, which is 1h0m0s",
		"{directory: d, compact: {into: [1h], resolution: [0s]}}": "compact::resolution is 0s: must be a multiple of 1s",
		"{directory: d, compact: {max_memory: 1MiB}}":             "compact::max_memory is 1MiB: must be at least 16MiB",
		"{directory: d, compact: {intoo: 1h}}":                    "unknown key compact::intoo",
	})
}
