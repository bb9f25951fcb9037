// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCPUDurationFollowsTheInterval(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		10 * time.Minute: 10 * time.Second,
		time.Minute:      10 * time.Second,
		10 * time.Second: 5 * time.Second,
		time.Second:      500 * time.Millisecond,
	} {
		config := DefaultConfig()
		config.CollectionInterval = interval
		assert.Equal(t, want, config.cpuDuration(), interval)
	}
}
