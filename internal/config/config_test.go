// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

type component struct {
	Server   configoptional.Optional[server] `mapstructure:"server"`
	Targets  []target                        `mapstructure:"targets"`
	Named    map[string]*target              `mapstructure:"named"`
	Anything map[string]any                  `mapstructure:"anything"`
	Interval time.Duration                   `mapstructure:"interval"`
	Size     Size                            `mapstructure:"size"`
	Pointer  *Size                           `mapstructure:"pointer"`
	Ratio    float64                         `mapstructure:"ratio"`
	Retry    configretry.BackOffConfig       `mapstructure:"retry"`
}

type server struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	Most int                     `mapstructure:"most"`
}

type target struct {
	Port uint16                                          `mapstructure:"port"`
	TLS  configoptional.Optional[configtls.ServerConfig] `mapstructure:"tls"`
}

func (c *component) Unmarshal(conf *confmap.Conf) error { return Unmarshal(conf, c) }

func load(t *testing.T, yaml string) (component, error) {
	t.Helper()
	c := component{Server: configoptional.Default(server{HTTP: confighttp.NewDefaultServerConfig()})}
	err := profiletest.LoadConfig(yaml, &c)
	return c, err
}

func TestUnmarshalReads(t *testing.T) {
	c, err := load(t, `
server: {endpoint: 'localhost:1', read_timeout: 3s, keepalive: {enabled: false}, response_headers: {a: b}, most: 5}
targets: [{port: 1e3}]
named: {one: {port: 1}, none: }
anything: {at: {all: [1.5]}}
interval: 0
size: 25%
ratio: 0.5
`)
	require.NoError(t, err)
	got := c.Server.Get()
	require.NotNil(t, got)
	assert.Equal(t, "localhost:1", got.HTTP.NetAddr.Endpoint)
	assert.Equal(t, 3*time.Second, got.HTTP.ReadTimeout)
	assert.Equal(t, 5, got.Most)
	assert.Equal(t, []target{{Port: 1000}}, c.Targets)
	assert.Equal(t, map[string]*target{"one": {Port: 1}, "none": {}}, c.Named)
	assert.Positive(t, c.Size)
	assert.InDelta(t, 0.5, c.Ratio, 0)
}

func TestNullTurnsOptionalSectionsOff(t *testing.T) {
	for _, off := range []string{"server:", "server: null", "server: {enabled: false, most: 1}"} {
		c, err := load(t, off+"\nratio: 0.5")
		require.NoError(t, err)
		assert.False(t, c.Server.HasValue(), off)
		assert.InDelta(t, 0.5, c.Ratio, 0)
	}
	c, err := load(t, "server: {}")
	require.NoError(t, err)
	assert.True(t, c.Server.HasValue())
	c, err = load(t, "server: {most: 5, keepalive: }")
	require.NoError(t, err)
	assert.Equal(t, 5, c.Server.Get().Most)
	assert.False(t, c.Server.Get().HTTP.Keepalive.HasValue())
}

func TestNullInAList(t *testing.T) {
	c, err := load(t, "targets: [{port: 1, tls: }, {port: 2}]")
	require.NoError(t, err)
	assert.Equal(t, []target{{Port: 1}, {Port: 2}}, c.Targets)
}

// Only optional sections have a key enabled.
func TestNullKeepsOtherSections(t *testing.T) {
	c := component{Retry: configretry.NewDefaultBackOffConfig()}
	require.NoError(t, profiletest.LoadConfig("retry:", &c))
	assert.Equal(t, configretry.NewDefaultBackOffConfig(), c.Retry)
}

func TestUnmarshalRejects(t *testing.T) {
	const unit = ": must be a duration with a unit, such as 30s or 168h (7 days)"
	for yaml, want := range map[string]string{
		"bogus: 1":                             "unknown key bogus: must be one of anything, interval, named, ",
		"enabled: true":                        "unknown key enabled: must be one of ",
		"server: {endpont: a}":                 "unknown key server::endpont: must be one of auth, compression",
		"server: {enabled: true, most: a}":     "'most'",
		"targets: [{}, {bogus: 1}]":            "unknown key targets::1::bogus: must be one of port",
		"named: {one: {bogus: 1}}":             "unknown key named::one::bogus: must be one of port",
		"server: {Most: 1}":                    "unknown key server::Most",
		"server: {HTTP: {}}":                   "unknown key server::HTTP",
		"server: {tls: {cert: a}}":             "unknown key server::tls::cert: must be one of ",
		"server: {cors: {origins: a}}":         "unknown key server::cors::origins: must be one of ",
		"server: 5":                            "server is 5: must be a section with keys of its own",
		"server: [a]":                          "'server' ",
		"server: {tls: true}":                  "server::tls is true: must be a section with keys of its own",
		"interval: 7d":                         `interval is "7d"` + unit,
		"interval: ''":                         `interval is ""` + unit,
		"interval: 5":                          "interval is 5" + unit,
		"interval: 0.5":                        "interval is 0.5" + unit,
		"server: {read_timeout: 30}":           "server::read_timeout is 30" + unit,
		"targets: [{port: http}]":              "'targets[0].port' expected type 'uint16'",
		"targets: [{port: 70000}]":             "targets::0::port is 70000: must be a whole number of 16 bits",
		"targets: [{port: -1}]":                "targets::0::port is -1: must be a whole number of 16 bits",
		"targets: [{port: 1e30}]":              "targets::0::port is 1e+30: must be a whole number",
		"server: {most: 1.5}":                  "server::most is 1.5: must be a whole number of 64 bits",
		"server: {most: 18446744073709551615}": "server::most is 18446744073709551615: must be a whole number of 64 bits",
		"server: {most: .nan}":                 "server::most is NaN: must be a whole number of 64 bits",
		"server: {most: 1e30}":                 "server::most is 1e+30: must be a whole number of 64 bits",
		"server: {include_metadata: 1}":        "'include_metadata' expected type 'bool'",

		"server: {max_request_body_size: 5MiB}":      "'max_request_body_size' expected type 'int64'",
		"server: {max_request_body_size: 1.5}":       "server::max_request_body_size is 1.5: must be a whole number of 64 bits",
		"server: {bogus: 1, most: 1.5}\ninterval: 1": "interval is 1" + unit + "\nserver::most is 1.5",
	} {
		_, err := load(t, yaml)
		require.Error(t, err, yaml)
		for line := range strings.SplitSeq(want, "\n") {
			assert.Contains(t, err.Error(), line, yaml)
		}
	}
}

func TestMemoryErrorsHaveTheLimitOfShares(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(100 << 20))
	share, err := ParseSize("10%")
	require.NoError(t, err)
	var c Checks
	c.Memory("max_memory", share, 16*MiB, TiB)
	require.EqualError(t, c.Err(), "max_memory is 10MiB: must be at least 16MiB and at most 1TiB; percentages are of the memory limit, which is 100 MiB")
}
