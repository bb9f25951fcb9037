// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/bytesize"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/strictconfig"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/files"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/scrape"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/self"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// Config is the configuration of the receiver. Of the sections server, remote,
// file and self, at least one must be there; an empty one has all its defaults.
type Config struct {
	// Server receives pushes over HTTP.
	Server configoptional.Optional[ServerConfig] `mapstructure:"server"`

	// Remote scrapes profiles over HTTP.
	Remote configoptional.Optional[scrape.Config] `mapstructure:"remote"`

	// File reads profiles from files.
	File configoptional.Optional[files.Config] `mapstructure:"file"`

	// Self profiles the collector's own process.
	Self configoptional.Optional[self.Config] `mapstructure:"self"`

	// ResourceAttributes go on the resource of every profile, unless the
	// profile's own way in (a query parameter) sets the same attribute.
	ResourceAttributes map[string]string `mapstructure:"resource_attributes"`

	// Links names the pprof labels that become the links of samples.
	Links LinksConfig `mapstructure:"links"`

	// TimestampLabel is the numeric pprof label, in nanoseconds since 1970,
	// that becomes the timestamps of samples. Default: end_timestamp_ns.
	TimestampLabel string `mapstructure:"timestamp_label"`
}

// ServerConfig is confighttp's server configuration and the limits of our own,
// all in one section.
type ServerConfig struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`

	// MaxDecompressedSize bounds one payload after decompression, through all
	// its layers. Default: 64MiB.
	MaxDecompressedSize bytesize.Size `mapstructure:"max_decompressed_size"`

	// MaxInFlight bounds the bytes of all payloads being worked on at a time.
	// Default: 256MiB.
	MaxInFlight bytesize.Size `mapstructure:"max_in_flight"`
}

// LinksConfig names the pprof labels that become the links of samples. A link needs
// both ids: 32 lower-case hexadecimal digits, or 16, that are not all zero. What is
// not a pair stays an attribute.
type LinksConfig struct {
	// TraceID and SpanID are the pair of labels that a link replaces.
	TraceID string `mapstructure:"trace_id"`
	SpanID  string `mapstructure:"span_id"`

	// The other labels make a link too where that pair does not, and stay.
	// Defaults: the names that are known from the field.
	OtherTraceIDs  []string `mapstructure:"other_trace_ids"`
	OtherSpanIDs   []string `mapstructure:"other_span_ids"`
	DecimalSpanIDs []string `mapstructure:"decimal_span_ids"`

	// DecimalRootSpanIDs are of the local root span, which stands in where nothing
	// else names a span.
	DecimalRootSpanIDs []string `mapstructure:"decimal_root_span_ids"`
}

var (
	_ confmap.Unmarshaler = (*Config)(nil)
	_ confmap.Validator   = (*Config)(nil)
	_ confmap.Validator   = (*ServerConfig)(nil)
	_ confmap.Validator   = (*LinksConfig)(nil)
)

// shortestDuration is the least that a timeout or interval makes sense with. A
// number without a unit, which is read as nanoseconds, is below it.
const shortestDuration = time.Millisecond

func createDefaultConfig() component.Config {
	return &Config{
		Server:         configoptional.Default(defaultServerConfig()),
		Remote:         configoptional.Default(scrape.DefaultConfig()),
		File:           configoptional.Default(files.DefaultConfig()),
		Self:           configoptional.Default(self.DefaultConfig()),
		Links:          defaultLinksConfig(),
		TimestampLabel: "end_timestamp_ns",
	}
}

func defaultLinksConfig() LinksConfig {
	known := pproftranslator.DefaultLinkLabels()
	return LinksConfig{
		TraceID:            "trace_id",
		SpanID:             "span_id",
		OtherTraceIDs:      known.TraceIDs,
		OtherSpanIDs:       known.SpanIDs,
		DecimalSpanIDs:     known.DecimalSpanIDs,
		DecimalRootSpanIDs: known.DecimalRootSpanIDs,
	}
}

// others are the labels that make a link and stay.
func (lc *LinksConfig) others() pproftranslator.LinkLabels {
	return pproftranslator.LinkLabels{
		TraceIDs:           orEmpty(lc.OtherTraceIDs),
		SpanIDs:            orEmpty(lc.OtherSpanIDs),
		DecimalSpanIDs:     orEmpty(lc.DecimalSpanIDs),
		DecimalRootSpanIDs: orEmpty(lc.DecimalRootSpanIDs),
	}
}

// has tells whether a label is one that links are made of.
func (lc *LinksConfig) has(name string) bool {
	return slices.Contains(slices.Concat([]string{lc.TraceID, lc.SpanID},
		lc.OtherTraceIDs, lc.OtherSpanIDs, lc.DecimalSpanIDs, lc.DecimalRootSpanIDs), name)
}

// orEmpty makes a list without names one that the translator takes as such.
func orEmpty(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func defaultServerConfig() ServerConfig {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:4040"
	server.ReadTimeout = 30 * time.Second
	server.ReadHeaderTimeout = 10 * time.Second
	// From the end of the headers on: the body may take ReadTimeout, then a
	// window with acknowledge: on_flush keeps the answer back.
	server.WriteTimeout = 60 * time.Second
	server.MaxRequestBodySize = int64(64 * bytesize.MiB)
	return ServerConfig{
		HTTP:                server,
		MaxDecompressedSize: 64 * bytesize.MiB,
		MaxInFlight:         256 * bytesize.MiB,
	}
}

// Unmarshal reads the configuration strictly.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return strictconfig.Unmarshal(conf, c) }

// checks are the errors of a section.
type checks []error

// require adds an error, unless ok.
func (c *checks) require(ok bool, format string, arguments ...any) {
	if !ok {
		*c = append(*c, fmt.Errorf(format, arguments...))
	}
}

// Validate checks the configuration as a whole.
func (c *Config) Validate() error {
	var errs checks
	errs.require(c.Server.HasValue() || c.Remote.HasValue() || c.File.HasValue() || c.Self.HasValue(),
		"at least one of server, remote, file or self is required (an empty section such as \"server:\" enables it with defaults)")
	for _, name := range slices.Sorted(maps.Keys(c.ResourceAttributes)) {
		errs.require(name != "", "resource_attributes: empty name")
		errs.require(utf8.ValidString(name) && utf8.ValidString(c.ResourceAttributes[name]), "resource_attributes: %q is not valid UTF-8", name)
	}
	errs.require(c.TimestampLabel != "", "timestamp_label is empty: must be the name of a label")
	errs.require(!c.Links.has(c.TimestampLabel), "timestamp_label is %q: must not be a label of links", c.TimestampLabel)
	return errors.Join(errs...)
}

// The largest sizes that make sense: the translator accepts no payload over 4 GiB.
const (
	largestPayload  = ingest.MaxPayload
	largestInFlight = bytesize.TiB
)

// Validate checks what confighttp does not.
func (sc *ServerConfig) Validate() error {
	var errs checks
	errs.require(sc.HTTP.NetAddr.Endpoint != "", "endpoint is empty: must be an address such as localhost:4040")
	errs.require(sc.HTTP.MaxRequestBodySize > 0, "max_request_body_size is %d: must be above 0", sc.HTTP.MaxRequestBodySize)
	errs.require(sc.MaxDecompressedSize > 0 && sc.MaxDecompressedSize <= largestPayload, "max_decompressed_size is %v: must be above 0 and at most %v", sc.MaxDecompressedSize, largestPayload)
	errs.require(sc.MaxInFlight <= largestInFlight, "max_in_flight is %v: must be at most %v", sc.MaxInFlight, largestInFlight)
	errs.require(sc.MaxInFlight >= sc.MaxDecompressedSize, "max_in_flight is %v: must be at least max_decompressed_size (%v)", sc.MaxInFlight, sc.MaxDecompressedSize)
	for i, algorithm := range sc.HTTP.CompressionAlgorithms {
		errs.require(slices.Contains(httpserver.ContentEncodings, algorithm), "compression_algorithms[%d] is %q: must be one of %q", i, algorithm, httpserver.ContentEncodings)
	}
	timeout := func(key string, value time.Duration) {
		errs.require(value == 0 || value >= shortestDuration, "%s is %v: must be 0 (no timeout) or at least %v, with a unit as in 30s", key, value, shortestDuration)
	}
	timeout("read_timeout", sc.HTTP.ReadTimeout)
	timeout("read_header_timeout", sc.HTTP.ReadHeaderTimeout)
	timeout("write_timeout", sc.HTTP.WriteTimeout)
	return errors.Join(errs...)
}

// Validate checks that each label has one meaning. The lists may contain the pair that a
// link replaces: its meaning takes precedence.
func (lc *LinksConfig) Validate() error {
	var errs checks
	errs.require(lc.TraceID != "", "trace_id is empty: must be the name of a label")
	errs.require(lc.SpanID != "", "span_id is empty: must be the name of a label")
	errs.require(lc.TraceID != lc.SpanID || lc.TraceID == "", "span_id is %q: must differ from trace_id", lc.SpanID)
	first := map[string]string{}
	for _, list := range []struct {
		key   string
		names []string
	}{
		{"other_trace_ids", lc.OtherTraceIDs},
		{"other_span_ids", lc.OtherSpanIDs},
		{"decimal_span_ids", lc.DecimalSpanIDs},
		{"decimal_root_span_ids", lc.DecimalRootSpanIDs},
	} {
		for i, name := range list.names {
			errs.require(name != "", "%s[%d] is empty: must be the name of a label", list.key, i)
			errs.require(name == "" || first[name] == "", "%s[%d] is %q: must not be in %s as well", list.key, i, name, first[name])
			first[name] = list.key
		}
	}
	return errors.Join(errs...)
}
