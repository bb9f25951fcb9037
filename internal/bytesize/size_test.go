// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package bytesize

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

type holder struct {
	Size    Size  `mapstructure:"size"`
	Pointer *Size `mapstructure:"pointer"`
}

func decode(t *testing.T, yaml string) (holder, error) {
	t.Helper()
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := raw.AsConf()
	require.NoError(t, err)
	got := holder{Size: 7}
	err = conf.Unmarshal(&got)
	return got, err
}

func TestConfmapReads(t *testing.T) {
	for yaml, want := range map[string]Size{
		"size: 64MiB":               64 * MiB,
		"size: 64 MiB":              64 * MiB,
		"size: '64MiB'":             64 * MiB,
		"size: 1KiB":                1024,
		"size: 1KB":                 1000,
		"size: 3GB":                 3_000_000_000,
		"size: 2GiB":                2 << 30,
		"size: 1TiB":                1 << 40,
		"size: 1TB":                 1_000_000_000_000,
		"size: 12B":                 12,
		"size: 12":                  12,
		"size: '12'":                12,
		"size: 0":                   0,
		"size: 67108864":            64 * MiB,
		"size: 1e6":                 1_000_000,
		"size: 9223372036854775807": math.MaxInt64,
		"size: 8388607TiB":          8388607 * TiB,
		"{}":                        7,
	} {
		t.Run(yaml, func(t *testing.T) {
			got, err := decode(t, yaml)
			require.NoError(t, err)
			assert.Equal(t, want, got.Size)
		})
	}

	got, err := decode(t, "pointer: 5MB")
	require.NoError(t, err)
	require.NotNil(t, got.Pointer)
	assert.Equal(t, 5*MB, *got.Pointer)
}

func TestConfmapRefuses(t *testing.T) {
	for yaml, want := range map[string]string{
		"size: 1.5":                  `invalid size 1.5: want a whole number of bytes`,
		"size: '1.5'":                `invalid size "1.5": want a whole number of bytes`,
		"size: 1.5MiB":               `invalid size "1.5MiB": want a whole number of bytes`,
		"size: -1":                   `invalid size -1: want a whole number of bytes`,
		"size: -1MiB":                `invalid size "-1MiB": want a whole number of bytes`,
		"size: +1MiB":                `invalid size "+1MiB"`,
		"size: 64mib":                `invalid size "64mib"`,
		"size: 64M":                  `invalid size "64M"`,
		"size: 64Mb":                 `invalid size "64Mb"`,
		"size: MiB":                  `invalid size "MiB"`,
		"size: ''":                   `invalid size ""`,
		"size: lots":                 `invalid size "lots"`,
		"size: true":                 `invalid size true (bool)`,
		"size: [1]":                  `invalid size [1]`,
		"size: {a: 1}":               `expected type`,
		"size: 9223372036854775808":  `more than 9223372036854775807 bytes`,
		"size: 8388608TiB":           `more than 9223372036854775807 bytes`,
		"size: 99999999999999999999": `invalid size`,
		"size: .inf":                 `invalid size +Inf`,
		"size: .nan":                 `invalid size NaN`,
	} {
		t.Run(yaml, func(t *testing.T) {
			_, err := decode(t, yaml)
			require.ErrorContains(t, err, want)
			assert.ErrorContains(t, err, "size")
		})
	}
}

func TestStringIsReadBack(t *testing.T) {
	for size, want := range map[Size]string{
		0: "0B", 1: "1B", 1025: "1025B", 64 * MiB: "64MiB", 1500 * KB: "1500KB",
		TiB: "1TiB", 3 * TB: "3TB", math.MaxInt64: "9223372036854775807B",
	} {
		assert.Equal(t, want, size.String())
		back, err := Parse(size.String())
		require.NoError(t, err)
		assert.Equal(t, size, back)
	}
}

func TestConfmapWritesText(t *testing.T) {
	conf := confmap.New()
	require.NoError(t, conf.Marshal(holder{Size: 64 * MiB}))
	assert.Equal(t, "64MiB", conf.Get("size"))
}

func TestLoadedFromFile(t *testing.T) {
	conf, err := confmaptest.LoadConf("testdata/size.yaml")
	require.NoError(t, err)
	var got holder
	require.NoError(t, conf.Unmarshal(&got))
	assert.Equal(t, 16*MiB, got.Size)
}
