// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestIntervals(t *testing.T) {
	at := time.Unix(2000, 0)
	for name, test := range map[string]struct {
		last, next      reading
		begin, duration int64
	}{
		"by the target's clock": {reading{time: 1000e9, at: at}, reading{time: 1060e9, at: at.Add(61 * time.Second)}, 1000e9, 60e9},
		"it stepped back":       {reading{time: 1000e9, at: at}, reading{time: 900e9, at: at.Add(61 * time.Second)}, 839e9, 61e9},
		"it tells no time":      {reading{at: at}, reading{at: at.Add(61 * time.Second)}, 2000e9, 61e9},
		"from 1970":             {reading{at: at}, reading{time: 5e9, at: at.Add(61 * time.Second)}, 1, 61e9},
	} {
		begin, duration := interval(&test.last, &test.next)
		assert.Equal(t, test.begin, begin, name)
		assert.Equal(t, test.duration, duration, name)
	}
}
