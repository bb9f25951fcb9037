// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
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
}

type server struct {
	HTTP confighttp.ServerConfig `mapstructure:",squash"`
	Most int                     `mapstructure:"most"`
}

type target struct {
	Port uint16 `mapstructure:"port"`
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

func TestSizesOfTheCollectorsSettingsHaveUnits(t *testing.T) {
	for text, want := range map[string]int64{"5MiB": 5 << 20, "'123'": 123, "123": 123} {
		c, err := load(t, "server: {max_request_body_size: "+text+"}")
		require.NoError(t, err)
		assert.Equal(t, want, c.Server.Get().HTTP.MaxRequestBodySize)
	}
}

func TestUnmarshalRejects(t *testing.T) {
	for yaml, want := range map[string]string{
		"bogus: 1":                                   "unknown key bogus",
		"enabled: true":                              "unknown key enabled",
		"server: {endpont: a}":                       "unknown key server::endpont",
		"targets: [{}, {bogus: 1}]":                  "unknown key targets::1::bogus",
		"named: {one: {bogus: 1}}":                   "unknown key named::one::bogus: must be one of port",
		"server: {Most: 1}":                          "unknown key server::Most",
		"server: {HTTP: {}}":                         "unknown key server::HTTP",
		"server: 5":                                  "server is 5: must be a section with keys of its own",
		"server: [a]":                                "server is [a]: must be a section with keys of its own",
		"server: {tls: true}":                        "server::tls is true: must be a section with keys of its own",
		"interval: 7d":                               "interval is \"7d\": must be a duration with a unit, such as 30s or 168h (7 days)",
		"targets: [{port: http}]":                    "targets::0::port is \"http\": must be a whole number",
		"server: {max_request_body_size: 5mib}":      "server::max_request_body_size is \"5mib\": must be a whole number of bytes, a size with a unit",
		"size: 12QiB":                                "is invalid: size is \"12QiB\": must be a whole number of bytes, a size with a unit",
		"server: {include_metadata: 1}":              "server::include_metadata is 1: must be true or false",
		"interval: 0.5":                              "interval is 0.5: must be a duration with a unit",
		"server: {most: 1.5}":                        "server::most is 1.5: must be a whole number",
		"targets: [{port: 1e30}]":                    "targets::0::port is 1e+30: must be a whole number",
		"server: {bogus: 1, most: 1.5}\ninterval: 1": "interval is 1: must be a duration with a unit, such as 30s or 168h (7 days)\nunknown key server::bogus: must be one of auth, compression",
	} {
		_, err := load(t, yaml)
		require.Error(t, err, yaml)
		assert.Contains(t, err.Error()+"\n", want, yaml)
		assert.NotContains(t, err.Error(), "config.", yaml)
		assert.NotContains(t, err.Error(), "confighttp", yaml)
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
