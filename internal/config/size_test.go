// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
)

func TestConfmapReads(t *testing.T) {
	for yaml, want := range map[string]Size{
		"size: 64MiB":               64 * MiB,
		"size: 64 MiB":              64 * MiB,
		"size: 1KiB":                1024,
		"size: 1KB":                 1000,
		"size: 1TiB":                1 << 40,
		"size: 12B":                 12,
		"size: 12":                  12,
		"size: 0":                   0,
		"size: 67108864":            64 * MiB,
		"size: 1e6":                 1_000_000,
		"size: 9223372036854775807": math.MaxInt64,
		"size: 8388607TiB":          8388607 * TiB,
	} {
		got, err := load(t, yaml)
		require.NoError(t, err, yaml)
		assert.Equal(t, want, got.Size, yaml)
	}

	got, err := load(t, "pointer: 5MB")
	require.NoError(t, err)
	require.NotNil(t, got.Pointer)
	assert.Equal(t, Size(5e6), *got.Pointer)
}

func TestConfmapRejects(t *testing.T) {
	for yaml, want := range map[string]string{
		"size: 1.5":                 `is "1.5": must be a whole number of bytes`,
		"size: 1.5MiB":              `is "1.5MiB": must be a whole number of bytes`,
		"size: -1":                  `is "-1": must be a whole number of bytes`,
		"size: +1MiB":               `is "+1MiB": `,
		"size: 64mib":               `is "64mib": `,
		"size: ''":                  `is "": `,
		"size: true":                `is "true": must be`,
		"size: [1]":                 `is "[1]": `,
		"size: {a: 1}":              `expected type`,
		"size: 9223372036854775808": `must be at most 9223372036854775807 bytes`,
		"size: 8388608TiB":          `must be at most 9223372036854775807 bytes`,
		"size: .inf":                `is "+Inf": `,
		"size: 1.5%":                `is "1.5%": must be a whole number`,
		"size: 5%KiB":               `is "5%KiB": must be a whole number`,
		"size: '%'":                 `is "%": must be a whole number`,
		"size: 101%":                `is "101%": must be at most 100%`,
	} {
		_, err := load(t, yaml)
		require.ErrorContains(t, err, want, yaml)
		assert.ErrorContains(t, err, "size", yaml)
	}
}

func TestStringIsReadBack(t *testing.T) {
	for size, want := range map[Size]string{
		0: "0B", 1: "1B", 1025: "1025B", 64 * MiB: "64MiB", 1500e3: "1500KB",
		TiB: "1TiB", 3e12: "3TB", math.MaxInt64: "9223372036854775807B",
	} {
		assert.Equal(t, want, size.String())
		back, err := ParseSize(size.String())
		require.NoError(t, err)
		assert.Equal(t, size, back)
	}
}

// What is printed as the configuration can be read again.
func TestConfmapWritesText(t *testing.T) {
	c, err := load(t, "{size: 64MiB, server: {endpoint: 'localhost:1', read_timeout: 3s}}")
	require.NoError(t, err)
	conf := confmap.New()
	require.NoError(t, conf.Marshal(c))
	assert.Equal(t, "64MiB", conf.Get("size"))
	again := component{Server: configoptional.Default(server{})}
	require.NoError(t, conf.Unmarshal(&again))
	assert.Equal(t, c.Size, again.Size)
	assert.Equal(t, c.Server.Get().HTTP.NetAddr, again.Server.Get().HTTP.NetAddr)
}

func TestPercentagesAreOfTheMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(1000)
	defer debug.SetMemoryLimit(before)
	for yaml, want := range map[string]Size{"25%": 250, "0%": 0, "7 %": 70, "100%": 1000} {
		got, err := load(t, "size: "+yaml)
		require.NoError(t, err)
		assert.Equal(t, want, got.Size, yaml)
	}
}

func TestMemoryLimitIsTheLeast(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	machine := MemoryLimit()
	assert.Positive(t, machine)
	assert.Less(t, machine, 1024*TiB, "that of the cgroup or the machine")
	debug.SetMemoryLimit(int64(machine) - 1)
	assert.Equal(t, machine-1, MemoryLimit(), "GOMEMLIMIT, where it is less")
	debug.SetMemoryLimit(int64(machine) + 1)
	assert.Equal(t, machine, MemoryLimit())
}
