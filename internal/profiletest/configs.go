// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
)

// LoadConfig reads YAML over the defaults in config as the Collector does, and validates the result.
func LoadConfig(yaml string, config any) error {
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	if err != nil {
		return err
	}
	conf, err := raw.AsConf()
	if err != nil {
		return err
	}
	if err := conf.Unmarshal(config); err != nil {
		return err
	}
	return confmap.Validate(config)
}

// CheckConfigs loads configurations in YAML over the defaults. Each must be rejected with an error that has the text, or
// its parts between " ... ", or be accepted if the text is "". No error names a type of Go or shows "s3cret".
func CheckConfigs(t *testing.T, defaults func() component.Config, configs map[string]string) {
	t.Helper()
	rejected := 0
	for yaml, want := range configs {
		err := LoadConfig(yaml, defaults())
		if want == "" {
			assert.NoError(t, err, yaml)
			continue
		}
		rejected++
		for part := range strings.SplitSeq(want, " ... ") {
			assert.ErrorContains(t, err, part, yaml)
		}
		for _, never := range []string{"Config'", "panic", "s3cret"} {
			assert.NotContains(t, fmt.Sprint(err), never, yaml)
		}
	}
	if rejected > 0 {
		Injected(t, fmt.Sprintf("%d wrong configurations", rejected))
	}
}
