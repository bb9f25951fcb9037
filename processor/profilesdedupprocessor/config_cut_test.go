// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/confmap"
)

// TestNoDurationIsCut: half of a nanosecond would be none, which has a meaning.
func TestNoDurationIsCut(t *testing.T) {
	for _, key := range []string{"window", "repeat_horizon", "retry_on_failure::max_elapsed_time"} {
		conf := confmap.NewFromStringMap(map[string]any{key: 0.5})
		assert.ErrorContains(t, conf.Unmarshal(createDefaultConfig().(*Config)), key)
	}
}
