// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParsePyroscopeTime(t *testing.T) {
	for text, want := range map[string]int64{
		"":                    0,
		"0":                   0,
		"12":                  12_000_000_000,
		"1700000000":          1_700_000_000_000_000_000,
		"1700000000123":       1_700_000_000_123_000_000,
		"1700000000123456":    1_700_000_000_123_456_000,
		"1700000000123456789": 1_700_000_000_123_456_789,
	} {
		got, err := parsePyroscopeTime(text)
		require.NoError(t, err, text)
		assert.EqualValues(t, want, got, text)
	}
	for _, text := range []string{"17000000000", "170000000012", "17000000001234", "9999999999999999999", "+170000000", "1e9", "17000000001234567890"} {
		_, err := parsePyroscopeTime(text)
		require.ErrorContains(t, err, "13 digits", text)
	}
}
