// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// expressions replaces the expressions that the receiver creator evaluates.
var expressions = strings.NewReplacer(
	"`endpoint`", "10.1.2.3:6060",
	"`pod.labels[\"app.kubernetes.io/name\"]`", "checkout",
	"`pod.uid`", "8b1d3c62",
)

// Each configuration of this receiver in the README is valid, also that for the receiver creator, after
// its expressions were evaluated.
func TestReadmeConfigurations(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var sections []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(readme, -1) {
		raw, err := confmap.NewRetrievedFromYAML(block[1])
		require.NoError(t, err)
		conf, err := raw.AsConf()
		require.NoError(t, err)
		for _, at := range []string{"receivers::pprof", "receivers::receiver_creator::receivers::pprof::config"} {
			if !conf.IsSet(at) {
				continue
			}
			section, err := conf.Sub(at)
			require.NoError(t, err)
			cfg := createDefaultConfig().(*Config)
			filled := confmap.NewFromStringMap(fill(section.ToStringMap()).(map[string]any))
			require.NoError(t, filled.Unmarshal(cfg), "%s", block[1])
			require.NoError(t, confmap.Validate(cfg), "%s", block[1])
			sections = append(sections, at)
			if at != "receivers::pprof" {
				target := cfg.Remote.Get().Targets[0]
				assert.Equal(t, "http://10.1.2.3:6060/debug/pprof", target.Endpoint)
				assert.Equal(t, map[string]string{"service.name": "checkout", "service.instance.id": "8b1d3c62"}, target.ResourceAttributes)
			}
		}
	}
	assert.Contains(t, sections, "receivers::receiver_creator::receivers::pprof::config")
	assert.Greater(t, len(sections), 4)
}

// The receiver creator tries whether a receiver accepts the key endpoint at the top level.
func TestEndpointAtTheTopIsRejected(t *testing.T) {
	conf := confmap.NewFromStringMap(map[string]any{"endpoint": "10.1.2.3:6060"})
	assert.Error(t, conf.Unmarshal(createDefaultConfig()))
}

func fill(value any) any {
	switch value := value.(type) {
	case string:
		return expressions.Replace(value)
	case []any:
		for i := range value {
			value[i] = fill(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = fill(value[key])
		}
	}
	return value
}
