// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import "go.opentelemetry.io/collector/confmap"

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
