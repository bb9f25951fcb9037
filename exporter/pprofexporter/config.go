// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/labels"
)

// Config says where profiles are sent, and how their series are named.
type Config struct {
	// HTTP configures the client. Protocol parca uses its settings for gRPC.
	HTTP confighttp.ClientConfig `mapstructure:",squash"`
	// Protocol is "pyroscope", "parca" or "http".
	Protocol string `mapstructure:"protocol"`
	// Labels are labels of series by resource attribute, in addition to the default ones. An empty label removes an
	// attribute.
	Labels map[string]string `mapstructure:"labels"`
	// SampleLabels lists sample attributes that become labels of series, with underscores for dots.
	SampleLabels []string `mapstructure:"sample_labels"`
	// SendingQueue configures the queue. Enabled by default.
	SendingQueue configoptional.Optional[exporterhelper.QueueBatchConfig] `mapstructure:"sending_queue"`
	// RetryOnFailure says how profiles are retried after a retryable error.
	RetryOnFailure configretry.BackOffConfig `mapstructure:"retry_on_failure"`

	// prevent unkeyed literal initialization
	_ struct{}
}

var (
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Unmarshaler = (*Config)(nil)
)

const (
	protocolPyroscope = "pyroscope"
	protocolParca     = "parca"
	protocolHTTP      = "http"
)

const exampleURL = "http://localhost:4040"

func createDefaultConfig() component.Config {
	client := confighttp.NewDefaultClientConfig()
	client.Timeout = 30 * time.Second
	return &Config{
		HTTP:     client,
		Protocol: protocolPyroscope,
		Labels: map[string]string{
			"service.name":                labelServiceName,
			"service.namespace":           "service_namespace",
			"service.version":             "service_version",
			"service.instance.id":         "instance",
			"deployment.environment.name": "deployment_environment",
			"host.name":                   "hostname",
			"k8s.cluster.name":            "cluster",
			"k8s.node.name":               "node",
			"k8s.namespace.name":          "namespace",
			"k8s.pod.name":                "pod",
			"k8s.container.name":          "container",
		},
		SendingQueue:   configoptional.Some(exporterhelper.NewDefaultQueueConfig()),
		RetryOnFailure: configretry.NewDefaultBackOffConfig(),
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return config.Unmarshal(conf, c) }

// Validate returns an error for each invalid key.
func (c *Config) Validate() error {
	var checks config.Checks
	_, err := config.ParseURL("endpoint", c.HTTP.Endpoint, exampleURL)
	checks.Add(err)
	checks.OneOf("protocol", c.Protocol, protocolPyroscope, protocolParca, protocolHTTP)
	checks.That(c.HTTP.Timeout >= time.Millisecond, "timeout", c.HTTP.Timeout, "at least 1ms")
	checks.That(c.HTTP.ProxyURL == "" || c.Protocol != protocolParca, "proxy_url", "set", "left out with protocol parca (gRPC takes the proxy from the environment)")
	taken := map[string]bool{labelProfileName: true, labelDelta: true}
	check := func(key, label string) {
		checks.That(label == labels.Name(label), key, label, "a name of letters, digits and underscores, which does not start with a digit")
		checks.That(!taken[label], key, label, "another label, as the exporter or another attribute sets it")
		taken[label] = true
	}
	for _, attribute := range slices.Sorted(maps.Keys(c.Labels)) {
		if label := c.Labels[attribute]; label != "" {
			check("labels::"+attribute, label)
		}
	}
	for i, attribute := range c.SampleLabels {
		check(fmt.Sprintf("sample_labels::%d", i), labels.Name(attribute))
	}
	return checks.Err()
}
