// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Config is the configuration of the receiver. At least one of the sections server,
// remote and self is required. The section {} has all its defaults, and null is off.
type Config struct {
	// Server receives profiles over HTTP.
	Server configoptional.Optional[httpserver.Config] `mapstructure:"server"`

	// Remote scrapes profiles over HTTP.
	Remote configoptional.Optional[scrape.Config] `mapstructure:"remote"`

	// Self profiles the Collector's own process.
	Self configoptional.Optional[self.Config] `mapstructure:"self"`

	// MaxInFlight limits the memory of all profiles in progress, in all sections. All pprof receivers share
	// the largest. Default: 25%.
	MaxInFlight config.Size `mapstructure:"max_in_flight"`

	// ResourceAttributes are set on the resource of every profile, unless the request
	// or target sets the same attribute.
	ResourceAttributes map[string]string `mapstructure:"resource_attributes"`

	// Links names the pprof labels that hold the trace ID and span ID. A valid pair becomes the
	// sample's link and is removed from the attributes.
	Links LinksConfig `mapstructure:"links"`

	// TimestampLabel is the numeric pprof label, in nanoseconds since 1970, that
	// becomes the timestamps of samples. Default: end_timestamp_ns.
	TimestampLabel string `mapstructure:"timestamp_label"`

	// JFR says how recordings of JVMs are translated.
	JFR ingest.JFR `mapstructure:"jfr"`
}

// LinksConfig names the pair of labels that a link replaces. Both must be valid IDs: 32
// and 16 lower-case hexadecimal digits, not all zero. Otherwise the labels stay
// attributes. The labels of known libraries make links as well, and stay.
type LinksConfig struct {
	// TraceID is the label with the trace ID, in 32 lower-case hexadecimal digits.
	TraceID string `mapstructure:"trace_id"`
	// SpanID is the label with the span ID, in 16 lower-case hexadecimal digits.
	SpanID string `mapstructure:"span_id"`
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Validator   = (*LinksConfig)(nil)
)

func createDefaultConfig() component.Config {
	return &Config{
		Server:         configoptional.Default(httpserver.DefaultConfig()),
		Remote:         configoptional.Default(scrape.DefaultConfig()),
		Self:           configoptional.Default(self.DefaultConfig()),
		MaxInFlight:    ingest.DefaultMaxInFlight(),
		Links:          LinksConfig{TraceID: "trace_id", SpanID: "span_id"},
		TimestampLabel: "end_timestamp_ns",
		JFR:            ingest.JFR{Timestamps: true, NormalizeClassNames: true},
	}
}

// Unmarshal reads the configuration strictly, also that of contrib's receiver.
func (c *Config) Unmarshal(conf *confmap.Conf) error {
	if err := acceptContribKeys(conf); err != nil {
		return err
	}
	if conf.IsSet("file") {
		return errors.New(noFiles)
	}
	return config.Unmarshal(conf, c)
}

// noFiles is what a configuration of files gets.
const noFiles = "file is no section of this receiver: must be the receiver profiles_file, which reads files of pprof and JFR by include, such as " +
	"profiles_file: {include: [/var/lib/profiles/*/*.pb.gz], path_attributes: '(?P<service_name>[^/]+)/[^/]+$'}"

// Validate checks the configuration as a whole.
func (c *Config) Validate() error {
	var checks config.Checks
	if !c.Server.HasValue() && !c.Remote.HasValue() && !c.Self.HasValue() {
		checks.Add(errors.New("at least one of server, remote or self is required (\"server: {}\" enables a section with its defaults, and null turns it off)"))
	}
	ingest.CheckMaxInFlight(&checks, c.MaxInFlight)
	ingest.CheckResourceAttributes(&checks, "resource_attributes", c.ResourceAttributes)
	isLink := c.TimestampLabel == c.Links.TraceID || c.TimestampLabel == c.Links.SpanID || pproftranslator.IsLinkLabel(c.TimestampLabel)
	checks.That(c.TimestampLabel != "", "timestamp_label", c.TimestampLabel, "the name of a label")
	checks.That(!isLink, "timestamp_label", c.TimestampLabel, "another label than those of links")
	return checks.Err()
}

// Validate checks that each label has one meaning.
func (lc *LinksConfig) Validate() error {
	var checks config.Checks
	checks.That(lc.TraceID != "", "trace_id", lc.TraceID, "the name of a label")
	checks.That(lc.SpanID != "", "span_id", lc.SpanID, "the name of a label")
	checks.That(lc.TraceID != lc.SpanID || lc.TraceID == "", "span_id", lc.SpanID, "another label than trace_id")
	return checks.Err()
}
