// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package configtable

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

type testConfig struct {
	// Window is how long, within MaxSize. Default: 10s.
	Window time.Duration `mapstructure:"window"`
	// MaxSize bounds a | b and *.
	MaxSize config.Size `mapstructure:"max_size"`
	// Names lists them in order. Default: [a, b].
	Names  []string                             `mapstructure:"names"`
	Server configoptional.Optional[testSection] `mapstructure:"server"`
	hidden int
}

type testSection struct {
	Retry configretry.BackOffConfig `mapstructure:",squash"`
	// Targets are hosts.
	Targets []testTarget `mapstructure:"targets"`
}

type testTarget struct {
	Enabled bool `mapstructure:"enabled"`
}

func TestReferenceListsKeysOfAllSections(t *testing.T) {
	t.Chdir("../..")
	table, err := reference(&testConfig{
		Window: 5 * time.Minute, MaxSize: config.MiB, hidden: 1,
		Server: configoptional.Default(testSection{Retry: configretry.BackOffConfig{MaxInterval: time.Hour}}),
	})
	require.NoError(t, err)
	assert.Equal(t, introduction+`
| Key | Type | Default | Description |
|---|---|---|---|
| `+"`window` | duration | `5m`"+` | How long, within `+"`max_size`"+`. |
| `+"`max_size` | size | `1MiB`"+` | Bounds a \| b and \*. |
| `+"`names` | list | `[a, b]`"+` | Lists them in order. |
| `+"`server`"+` | optional section, extends [configretry.BackOffConfig](https://pkg.go.dev/go.opentelemetry.io/collector/config/configretry#BackOffConfig) |  |  |
| `+"`server.enabled` | bool | `false`"+` | Retries after a retryable error. |
| `+"`server.initial_interval` | duration | `0s`"+` | The wait before the first retry. |
| `+"`server.max_elapsed_time` | duration | `0s`"+` | Ends retries after this time. 0 means no limit. |
| `+"`server.max_interval` | duration | `1h`"+` | The longest wait between two attempts. |
| `+"`server.multiplier` | float | `0`"+` | The factor by which the wait grows after each attempt. |
| `+"`server.randomization_factor` | float | `0`"+` | The share by which each wait varies at random. |
| `+"`server.targets` | list | `[]`"+` | Hosts. |
| `+"`server.targets[].enabled` | bool | `false`"+` |  |

`, table)
}

func TestDurationsHaveNoZeroParts(t *testing.T) {
	for text, duration := range map[string]time.Duration{
		"0s": 0, "10s": 10 * time.Second, "1m": time.Minute, "1m30s": 90 * time.Second, "20m": 20 * time.Minute,
		"10h": 10 * time.Hour, "1h20m": 80 * time.Minute, "200ms": 200 * time.Millisecond, "1h0m20s": time.Hour + 20*time.Second,
	} {
		assert.Equal(t, text, textOf(reflect.ValueOf(duration)))
	}
}
