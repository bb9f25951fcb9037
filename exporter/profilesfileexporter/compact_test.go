// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestInvalidCompactionNamesTheKey(t *testing.T) {
	for want, keys := range map[string]map[string]any{
		"": {},
		"compact::after is -1s: must be 0 or more":                                                 {"after": "-1s"},
		"compact::into is []: must be one duration or more":                                        {"into": []any{}, "resolution": []any{}},
		"compact::into is 1h30m0s: must be a multiple of 1h0m0s":                                   {"into": []any{"1h", "90m"}},
		"compact::into is 1h0m0s: must be a multiple of 24h0m0s":                                   {"into": []any{"24h", "1h"}},
		"compact::into is 30s: must be a multiple of 1m0s":                                         {"into": []any{"30s", "1h"}},
		"compact::resolution is [1m0s]: must be a duration for each of compact::into, which has 2": {"resolution": []any{"1m"}},
		"compact::resolution is 7m0s: must be a divisor of compact::into, which is 1h0m0s":         {"into": []any{"1h"}, "resolution": []any{"7m"}},
		"compact::resolution is 0s: must be a multiple of 1s":                                      {"into": []any{"1h"}, "resolution": []any{"0s"}},
		"compact::max_memory is 1MiB: must be at least 16MiB":                                      {"max_memory": "1MiB"},
		"unknown key compact::intoo":                                                               {"intoo": "1h"},
	} {
		cfg := createDefaultConfig().(*Config)
		err := cfg.Unmarshal(confmap.NewFromStringMap(map[string]any{"directory": t.TempDir(), "compact": keys}))
		if err == nil {
			err = cfg.Validate()
		}
		if want == "" {
			require.NoError(t, err)
			assert.Equal(t, defaultCompact(), *cfg.Compact.Get())
			continue
		}
		assert.ErrorContains(t, err, want)
	}
}
