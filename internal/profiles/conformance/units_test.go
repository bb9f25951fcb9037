// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestUnitsOfUCUM(t *testing.T) {
	for unit, want := range map[string]bool{
		"": true, "By": true, "KiBy": true, "ns": true, "us": true, "ms": true, "s": true, "min": true, "1": true, "%": true, "Hz": true,
		"{request}": true, "By/s": true, "m/s2": true, "10*6": true, "{fault}/s": true, "Cel": true, "s{idle}": true,
		"bytes": false, "nanoseconds": false, "count": false, "seconds": false, "B s": false, "/": false, "µs": false, "{a": false,
		strings.Repeat("s.", 40) + "s": false,
	} {
		assert.Equal(t, want, isUCUM(unit), unit)
	}
}
