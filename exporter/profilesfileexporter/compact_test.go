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
		"{directory: d, compact: {after: -1s}}":                "compact::after is -1s: must be 0 or more",
		"{directory: d, compact: {resolution: []}}":            "compact::resolution is []: must be one duration for hours, or two for hours and days, such as [1m, 10m]",
		"{directory: d, compact: {resolution: [1m, 10m, 1h]}}": "must be one duration for hours, or two",
		"{directory: d, compact: {resolution: [7m]}}":          "compact::resolution is 7m0s: must be a divisor of 1h0m0s",
		"{directory: d, compact: {resolution: [1m, 7m]}}":      "compact::resolution is 7m0s: must be a divisor of 24h0m0s",
		"{directory: d, compact: {resolution: [2m, 3m]}}":      "compact::resolution is 3m0s: must be a multiple of 2m0s",
		"{directory: d, compact: {resolution: [0s]}}":          "compact::resolution is 0s: must be a multiple of 1s",
		"{directory: d, compact: {resolution: [1m]}}":          "",
		"{directory: d, compact: {resolution: [1m, 1h]}}":      "",
		"{directory: d, compact: {max_memory: 1MiB}}":          "compact::max_memory is 1MiB: must be at least 16MiB",
		"{directory: d, compact: {into: 1h}}":                  "unknown key compact::into",
	})
}
